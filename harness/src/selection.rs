//! `--only` and `--skip`: from names to subjects.

use crate::manifest::{DEFAULT_VARIANT, Implementation, Variant};
use crate::toml_file::did_you_mean;

/// An implementation in one variant.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The implementation.
    pub implementation: Implementation,
    /// The way to run it.
    pub variant: Variant,
}

impl Subject {
    /// `go` for the default variant, `go:tuned` for another.
    pub fn label(&self) -> String {
        label(&self.implementation, &self.variant)
    }
}

fn label(implementation: &Implementation, variant: &Variant) -> String {
    if variant.name == DEFAULT_VARIANT {
        implementation.name.clone()
    } else {
        format!("{}:{}", implementation.name, variant.name)
    }
}

/// Which subjects a command is about when nobody names any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// The default variant of each implementation.
    Standard,
    /// Every variant.
    All,
}

/// A subject and whether somebody asked for it by name.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The subject.
    pub subject: Subject,
    /// `--only` named it: that it cannot run is then an error, not a skipped row.
    pub by_name: bool,
}

/// Resolves the names: `only` in the order given (empty: all of `rows`), less `skip`.
/// In `skip` a bare name stands for all variants of the implementation.
///
/// # Errors
/// An unknown name, with the nearest known one; or nothing left.
pub fn choose(
    implementations: &[Implementation],
    only: &[String],
    skip: &[String],
    rows: Rows,
) -> Result<Vec<Chosen>, String> {
    let all: Vec<Subject> = implementations
        .iter()
        .flat_map(|i| {
            i.variants.iter().map(|v| Subject { implementation: i.clone(), variant: v.clone() })
        })
        .collect();
    let labels: Vec<String> = all.iter().map(Subject::label).collect();
    for name in only.iter().chain(skip) {
        if !labels.contains(name) {
            return Err(unknown(name, &labels));
        }
    }
    let skipped = |s: &Subject| skip.contains(&s.label()) || skip.contains(&s.implementation.name);
    let wanted: Vec<Chosen> = if only.is_empty() {
        all.into_iter()
            .filter(|s| rows == Rows::All || s.variant.name == DEFAULT_VARIANT)
            .map(|subject| Chosen { subject, by_name: false })
            .collect()
    } else {
        let mut seen: Vec<&String> = Vec::new();
        only.iter()
            .filter(|name| {
                let new = !seen.contains(name);
                seen.push(name);
                new
            })
            .filter_map(|name| all.iter().find(|s| s.label() == *name).cloned())
            .map(|subject| Chosen { subject, by_name: true })
            .collect()
    };
    let wanted: Vec<Chosen> = wanted.into_iter().filter(|c| !skipped(&c.subject)).collect();
    if wanted.is_empty() {
        return Err("nothing is left to do: --skip takes out all that was chosen".to_owned());
    }
    Ok(wanted)
}

fn unknown(name: &str, labels: &[String]) -> String {
    let near = did_you_mean(name, labels.iter().map(String::as_str));
    format!("unknown implementation `{name}`{near} (known: {})", labels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn implementations() -> Vec<Implementation> {
        ["alpha", "beta"]
            .iter()
            .map(|name| {
                let dir = tempfile::tempdir().expect("temporary folder");
                let text = format!(
                    "name = \"{name}\"\nlanguage = \"L\"\nstack = \"s\"\nkind = \"framework\"\n\
                     state = \"shared\"\n[run]\ncommand = [\"x\"]\n[[variant]]\nname = \"fast\"\n"
                );
                std::fs::write(dir.path().join("impl.toml"), text).expect("write");
                crate::manifest::load(dir.path()).expect("good manifest")
            })
            .collect()
    }

    fn labels(only: &[&str], skip: &[&str], rows: Rows) -> Result<Vec<String>, String> {
        let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        choose(&implementations(), &owned(only), &owned(skip), rows)
            .map(|chosen| chosen.iter().map(|c| c.subject.label()).collect())
    }

    #[test]
    fn names_choose_and_skip() {
        let ok = |v: &[&str]| Ok(v.iter().map(|&s| s.to_owned()).collect::<Vec<_>>());
        assert_eq!(labels(&[], &[], Rows::Standard), ok(&["alpha", "beta"]));
        assert_eq!(labels(&[], &["beta"], Rows::All), ok(&["alpha", "alpha:fast"]));
        assert_eq!(
            labels(&["beta:fast", "alpha"], &[], Rows::Standard),
            ok(&["beta:fast", "alpha"])
        );
        assert_eq!(labels(&["beta", "beta"], &[], Rows::Standard), ok(&["beta"]));
        assert!(
            labels(&["beta"], &["beta"], Rows::Standard).unwrap_err().contains("nothing is left")
        );
        let error = labels(&["btea"], &[], Rows::Standard).unwrap_err();
        assert!(error.contains("did you mean `beta`?"), "{error}");
    }
}
