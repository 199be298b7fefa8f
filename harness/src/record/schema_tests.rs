//! The JSON Schema that ships is what the types give, and the document names all of it.

use super::Benchmark;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Set, the schema is written instead of compared.
const WRITE: &str = "WRITE_SCHEMA";

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(file)
}

/// As the harness writes: every field is there.
fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<Benchmark>().to_value()
}

#[test]
fn the_schema_that_ships_is_what_the_types_give() {
    let (file, schema) = (docs("benchmark.schema.json"), schema());
    if std::env::var_os(WRITE).is_some() {
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        fs::write(&file, text).expect("written");
    }
    let shipped: Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("the file")).expect("JSON");
    assert!(
        shipped == schema,
        "docs/benchmark.schema.json is not what the types give; if that is meant, run\n\
         {WRITE}=1 cargo test -p harness --lib the_schema_that_ships\n\
         and tell readers in docs/FORMAT.md (and by a new SCHEMA, if old readers break)"
    );
}

/// Names of fields and values below `schema`.
fn names(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(all) => {
            for (key, value) in all {
                match (key.as_str(), value) {
                    ("properties", Value::Object(fields)) => found.extend(fields.keys().cloned()),
                    ("enum" | "const", value) => {
                        let listed = value.as_array().cloned().unwrap_or(vec![value.clone()]);
                        found.extend(listed.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => {}
                }
                names(value, found);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

#[test]
fn every_name_in_the_schema_is_explained() {
    let text = fs::read_to_string(docs("FORMAT.md")).expect("docs/FORMAT.md");
    let mut found = BTreeSet::new();
    names(&schema(), &mut found);
    assert!(found.len() > 150, "only {} names were found", found.len());
    let missing: Vec<&String> =
        found.iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/FORMAT.md does not name {missing:?}");
}
