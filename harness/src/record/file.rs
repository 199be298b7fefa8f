//! Errors of run files, and reading JSON so that an error names its place.

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::path::{Path, PathBuf};

/// A run file that cannot be used, and where in it the trouble is.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {message}", file.display(), place(*line, *column))]
pub struct RunFileError {
    /// The file as it was named.
    pub file: PathBuf,
    /// Line, counted from 1, where one can be named.
    pub line: Option<usize>,
    /// Column, counted from 1 in bytes, where one can be named.
    pub column: Option<usize>,
    /// What is wrong and what to do about it.
    pub message: String,
}

fn place(line: Option<usize>, column: Option<usize>) -> String {
    [line, column].into_iter().flatten().map(|n| format!(":{n}")).collect()
}

impl RunFileError {
    /// An error about the file as a whole.
    pub fn whole(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, column: None, message: message.into() }
    }

    /// An error about a line, counted from 1.
    pub fn at_line(file: &Path, line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::whole(file, message) }
    }

    /// The same with what to do about it.
    pub fn hint(mut self, hint: &str) -> Self {
        self.message = format!("{}; {hint}", self.message);
        self
    }
}

/// The bytes of `file`.
///
/// # Errors
/// When it cannot be read.
pub fn bytes(file: &Path) -> Result<Vec<u8>, RunFileError> {
    std::fs::read(file).map_err(|e| RunFileError::whole(file, format!("cannot be read: {e}")))
}

/// Parses `text`, which begins at line `first` of `file`.
///
/// # Errors
/// When it is not JSON or not of the shape of `T`: names line and column.
pub fn parse<T: DeserializeOwned>(
    file: &Path,
    first: usize,
    text: &[u8],
) -> Result<T, RunFileError> {
    serde_json::from_slice(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        // It says the place by itself, which is wrong where the text is a part of a file.
        let said = error.to_string();
        let said = said.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&said);
        let message = match error.classify() {
            _ if text.iter().all(u8::is_ascii_whitespace) => "is empty".to_owned(),
            Category::Eof => format!("is cut short ({said})"),
            Category::Syntax | Category::Io => format!("is damaged: no JSON here ({said})"),
            Category::Data => format!("is damaged: {said}"),
        };
        RunFileError {
            column: (column > 0).then_some(column),
            ..RunFileError::at_line(file, first - 1 + line.max(1), message)
        }
    })
}
