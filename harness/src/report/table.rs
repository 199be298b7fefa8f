//! A table that can be printed as text or Markdown.

use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For a terminal.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For documents.
    Markdown,
}

/// A title, columns and rows of text. The first column is left-aligned, the others right
/// unless said otherwise.
#[derive(Debug, Clone)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    left: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&c| c.to_owned()).collect(),
            left: vec![0],
            rows: Vec::new(),
        }
    }

    /// Left-aligns every column: for words rather than figures.
    pub fn words(mut self) -> Self {
        self.left = (0..self.columns.len()).collect();
        self
    }

    /// Appends a row with one text a column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// As text, ending with a newline. [`Format::Json`] is not a table's business: it
    /// prints as text.
    pub fn print(&self, format: Format) -> String {
        if format == Format::Markdown { self.markdown() } else { self.text() }
    }

    fn text(&self) -> String {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        grid.set_header(self.columns.iter());
        for row in &self.rows {
            // A control character from a manifest must not steer a terminal.
            grid.add_row(row.iter().map(|c| c.replace(|c: char| c.is_control() && c != '\n', " ")));
        }
        for (i, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if !self.left.contains(&i) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let body: String = grid.lines().map(|l| format!("  {}\n", l.trim_end())).collect();
        let title = if self.title.is_empty() { String::new() } else { format!("{}\n", self.title) };
        title + &body
    }

    fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut out = String::new();
        if !self.title.is_empty() {
            out += &format!("**{}**\n\n", self.title);
        }
        out += &line(&mut self.columns.iter().cloned());
        out +=
            &line(&mut (0..self.columns.len()).map(|i| {
                if self.left.contains(&i) { "---".to_owned() } else { "---:".to_owned() }
            }));
        for row in &self.rows {
            out += &line(&mut row.iter().map(|cell| escape_markdown(cell)));
        }
        out
    }
}

/// Makes text safe inside a Markdown table cell.
pub fn escape_markdown(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_markdown() {
        let mut table = Table::new("Title", &["member", "req/s"]);
        table.row(vec!["a|b".to_owned(), "1,000".to_owned()]);
        table.row(vec!["long name".to_owned(), "7".to_owned()]);
        assert_eq!(
            table.print(Format::Text),
            "Title\n  member     req/s\n  a|b        1,000\n  long name      7\n"
        );
        assert_eq!(
            table.print(Format::Markdown),
            "**Title**\n\n| member | req/s |\n| --- | ---: |\n| a\\|b | 1,000 |\n| long name | 7 |\n"
        );
    }
}
