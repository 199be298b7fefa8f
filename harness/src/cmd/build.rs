//! `harness build`.

use super::project::{Machinery, Project};
use super::{Unsuccessful, Usage, prepare, say};
use crate::cli::Names;
use crate::selection::{self, Rows};

pub fn run(project: &Project, args: &Names) -> anyhow::Result<()> {
    let implementations = project.implementations()?;
    let chosen =
        selection::choose(&implementations, &args.names, &[], Rows::Standard).map_err(Usage)?;
    let prepared = prepare::build(chosen, &Machinery::start()?)?;
    for built in &prepared.built {
        say(&format!("{}: built", built.subject.label()));
    }
    if prepared.has_failures() {
        return Err(Unsuccessful("not everything could be built".to_owned()).into());
    }
    Ok(())
}
