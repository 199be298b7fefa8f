//! Reads a TOML file into a wire type, with errors that name file, line, key and remedy.
//!
//! Does not know what the files mean: manifests, scenarios and contract cases give
//! their own types.

use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A file that cannot be used, and where in it the trouble is.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {message}", file.display(), line.map(|l| format!(":{l}")).unwrap_or_default())]
pub struct FileError {
    /// The file as it was named.
    pub file: PathBuf,
    /// Line, counted from 1, where one can be named.
    pub line: Option<usize>,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl FileError {
    /// An error about the file as a whole.
    pub fn whole(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, message: message.into() }
    }

    /// An error about the first line that holds `needle`, or about the whole file.
    pub fn at(file: &Path, text: &str, needle: &str, message: impl Into<String>) -> Self {
        let line = text.lines().position(|l| l.contains(needle)).map(|i| i + 1);
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

/// Reads and parses `file`; gives the text too, so that later checks can name lines.
///
/// # Errors
/// When the file cannot be read, is not TOML, or does not have the shape of `T`.
pub fn read<T: DeserializeOwned>(file: &Path) -> Result<(T, String), FileError> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| FileError::whole(file, format!("cannot be read: {e}")))?;
    let value = parse(file, &text)?;
    Ok((value, text))
}

/// Parses `text`; `file` is only for the error.
///
/// # Errors
/// As [`read`].
pub fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| FileError {
        file: file.to_owned(),
        line: error.span().map(|span| line_of(text, span.start)),
        message: with_nearest_key(error.message().trim()),
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&b| b == b'\n').count() + 1
}

/// Serde says "unknown field `x`, expected one of `a`, `b`"; a person wants the likely one first.
pub fn with_nearest_key(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let (Some(unknown), true) = (quoted.next(), message.starts_with("unknown ")) else {
        return message.to_owned();
    };
    format!("{message}{}", did_you_mean(unknown, quoted))
}

/// `; did you mean …?` where a candidate looks like `name`, else nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// The candidate that looks most like `name`, when one looks like it at all.
fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::jaro_winkler(name, c), c))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wire {
        #[expect(dead_code)]
        language: String,
    }

    #[test]
    fn unknown_key_names_file_line_and_nearest_key() {
        let error =
            parse::<Wire>(Path::new("impl.toml"), "# top\nlangauge = \"Go\"\n").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("impl.toml:2: unknown field `langauge`"), "{text}");
        assert!(text.ends_with("did you mean `language`?"), "{text}");
    }

    #[test]
    fn nothing_is_suggested_where_nothing_is_alike() {
        assert_eq!(nearest("zzz", ["rust", "go"]), None);
        assert_eq!(nearest("rsut", ["rust", "go"]), Some("rust"));
    }
}
