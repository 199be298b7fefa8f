//! Replaces a marked part of a document: tables in docs are written by commands, not by hand.

/// Puts `content` between `<!-- begin NAME … -->` and `<!-- end NAME -->` in `text`.
///
/// # Errors
/// When the markers are missing or in the wrong order.
pub fn splice(text: &str, name: &str, content: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- begin {name}"), format!("<!-- end {name} -->"));
    let missing = |what: &str| format!("has no line `{what}`");
    let from = text.find(&begin).ok_or_else(|| missing(&format!("{begin} -->")))?;
    let head = from + text[from..].find('\n').ok_or_else(|| missing(&end))? + 1;
    let tail = head + text[head..].find(&end).ok_or_else(|| missing(&end))?;
    Ok(format!("{}\n{}\n\n{}", &text[..head], content.trim_end(), &text[tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marked_part_is_replaced_and_a_second_time_changes_nothing() {
        let text = "# Top\n<!-- begin t; by a command -->\nold\n<!-- end t -->\nbottom\n";
        let once = splice(text, "t", "| new |\n").expect("markers");
        assert_eq!(
            once,
            "# Top\n<!-- begin t; by a command -->\n\n| new |\n\n<!-- end t -->\nbottom\n"
        );
        assert_eq!(splice(&once, "t", "| new |\n"), Ok(once));
        assert!(splice(text, "other", "").is_err());
        assert!(splice("<!-- begin t -->\n", "t", "").is_err());
    }
}
