//! The few lines of a program around a place, for a failure's position. Pure and bounded: a program of one enormous
//! line costs no more than a window of it.

use std::fmt::Write as _;

/// Characters of a line that are shown around the column.
const WINDOW_CHARS: usize = 96;

/// Up to three numbered lines around `line` (from 1), with a caret under `column` (from 1, UTF-16 units). Empty if the
/// program has no such line.
#[must_use]
pub fn excerpt(program: &str, line: u32, column: u32) -> String {
    let (Ok(line), Ok(column)) = (usize::try_from(line), usize::try_from(column)) else {
        return String::new();
    };
    if line == 0 {
        return String::new();
    }
    let first = line.saturating_sub(2);
    let lines = program.split('\n').enumerate().skip(first).take(3);
    if program.split('\n').nth(line - 1).is_none() {
        return String::new();
    }
    let width = (line + 1).to_string().len();
    let at = program.split('\n').nth(line - 1).map_or(0, |text| chars_before(text, column));
    let from = at.saturating_sub(WINDOW_CHARS / 2);
    // What follows a final line feed is no line worth a number.
    let mut following = program.split('\n').skip(line);
    let ends_after = following.next() == Some("") && following.next().is_none();
    let mut out = String::new();
    for (index, text) in lines {
        if index > line || (index == line && ends_after) {
            break;
        }
        let shown = window(text, from);
        let numbered = format!("{:>width$} | {shown}", index + 1);
        let _ = writeln!(out, "{}", numbered.trim_end());
        if index + 1 == line && column > 0 {
            let lead = usize::from(from > 0) + at - from;
            let _ = writeln!(out, "{:>width$} | {:>lead$}^", "", "");
        }
    }
    out.truncate(out.trim_end_matches('\n').len());
    out
}

/// How many characters stand before a column of UTF-16 units; the line's length for a column beyond it.
fn chars_before(text: &str, column: usize) -> usize {
    let mut units = 0;
    let before = column.saturating_sub(1);
    text.chars()
        .take_while(|c| {
            units += c.len_utf16();
            units <= before
        })
        .count()
}

/// The characters of a line from `from`, as many as are shown; control characters (a tab too, so that the caret
/// stands where it should) become spaces.
fn window(text: &str, from: usize) -> String {
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    let mut rest = text.chars().skip(from);
    shown.extend(rest.by_ref().take(WINDOW_CHARS).map(|c| if c.is_control() { ' ' } else { c }));
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(program: &str, line: u32, column: u32, expected: &str) {
        assert_eq!(excerpt(program, line, column), expected);
    }

    #[test]
    fn three_lines_with_a_caret() {
        check("a\nfoo.bar.baz\nc\nd", 2, 5, "1 | a\n2 | foo.bar.baz\n  |     ^\n3 | c");
        check("const x = ;", 1, 11, "1 | const x = ;\n  |           ^");
        check("a\nb", 2, 1, "1 | a\n2 | b\n  | ^");
        check("a\nb\n", 2, 1, "1 | a\n2 | b\n  | ^");
        check("a\nb\n", 3, 1, "2 | b\n3 |\n  | ^");
        check("a\n\nb", 1, 1, "1 | a\n  | ^\n2 |");
    }

    #[test]
    fn numbers_line_up() {
        let program = "x\n".repeat(12);
        check(&program, 9, 1, " 8 | x\n 9 | x\n   | ^\n10 | x");
    }

    #[test]
    fn columns_are_utf16_units_and_tabs_are_one() {
        check("🚀🚀x", 1, 5, "1 | 🚀🚀x\n  |   ^");
        check("\tx", 1, 2, "1 |  x\n  |  ^");
        check("ab\r", 1, 9, "1 | ab\n  |    ^");
    }

    #[test]
    fn places_that_are_not_there() {
        check("a", 0, 1, "");
        check("a", 2, 1, "");
        check("a", u32::MAX, u32::MAX, "");
        check("", 1, 1, "1 |\n  | ^");
        check("abc", 1, 0, "1 | abc");
    }

    #[test]
    fn a_long_line_is_a_window() {
        let program = format!("{}!{}", "a".repeat(10_000), "b".repeat(10_000));
        let text = excerpt(&program, 1, 10_001);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() < 110), "{text}");
        let caret = lines[1].chars().position(|c| c == '^').expect("a caret");
        assert_eq!(lines[0].chars().nth(caret), Some('!'));
    }
}
