//! `harness list`.

use super::project::Project;
use super::{print, print_json};
use crate::cli::Output;
use crate::report::table::{Format, Table};
use crate::selection::Subject;
use serde::Serialize;

#[derive(Serialize)]
struct Row {
    name: String,
    language: String,
    stack: String,
    kind: crate::manifest::Kind,
    state: crate::manifest::State,
    note: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    implementations: Vec<Row>,
    scenarios: Vec<(String, String)>,
}

pub fn run(project: &Project, args: &Output) -> anyhow::Result<()> {
    let mut implementations = Vec::new();
    for implementation in project.implementations()? {
        for variant in &implementation.variants {
            let subject =
                Subject { implementation: implementation.clone(), variant: variant.clone() };
            implementations.push(Row {
                name: subject.label(),
                language: implementation.language.clone(),
                stack: variant.stack.clone(),
                kind: variant.kind,
                state: variant.state,
                note: variant.note.clone(),
            });
        }
    }
    let scenarios = project.scenarios()?.into_iter().map(|s| (s.name, s.about)).collect();
    let listed = Listed { implementations, scenarios };
    if args.format == Format::Json {
        return print_json(&listed);
    }
    let mut table =
        Table::new("Implementations", &["name", "language", "stack", "kind", "state", "note"])
            .words();
    for row in &listed.implementations {
        table.row(vec![
            row.name.clone(),
            row.language.clone(),
            row.stack.clone(),
            row.kind.to_string(),
            row.state.to_string(),
            row.note.clone().unwrap_or_default(),
        ]);
    }
    let mut scenarios = Table::new("Scenarios", &["name", "about"]).words();
    for (name, about) in &listed.scenarios {
        scenarios.row(vec![name.clone(), about.clone()]);
    }
    print(&format!("{}\n{}", table.print(args.format), scenarios.print(args.format)))
}
