//! Edits of a text that move nothing: blanks over ranges, and single tokens written into what was blanked.

use std::ops::Range;

use crate::scan;

/// What kind of erased text it is, for the message when it cannot be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Construct {
    /// `x as T`; the binary operator of `x`, if it has one.
    As(Option<&'static str>),
    /// `x satisfies T`; the same.
    Satisfies(Option<&'static str>),
    /// `<T>x`.
    Assertion,
    /// `x!`.
    NonNull,
    /// `f<T>`.
    TypeArguments,
    /// `<T>(x: T) => x`, `function f<T>() {}`.
    TypeParameters,
    /// `: T`, optional marks, modifiers.
    Annotation,
    /// Interfaces, aliases, ambient declarations, overloads.
    Declaration,
}

/// The edits that turn a program into JavaScript.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    blanks: Vec<Range<usize>>,
    marks: Vec<(usize, &'static str)>,
    constructs: Vec<(Range<usize>, Construct)>,
    /// Written after the program's own last line.
    tail: String,
}

impl Edits {
    /// Blanks a range.
    pub(crate) fn blank(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.blanks.push(range);
        }
    }

    /// Blanks a range and remembers why.
    pub(crate) fn erase(&mut self, range: Range<usize>, construct: Construct) {
        self.constructs.push((range.clone(), construct));
        self.blank(range);
    }

    /// Writes a token at a place that is blanked.
    pub(crate) fn mark(&mut self, at: usize, token: &'static str) {
        self.marks.push((at, token));
    }

    /// Adds a line after the program.
    pub(crate) fn append(&mut self, line: &str) {
        self.tail.push('\n');
        self.tail.push_str(line);
    }

    /// The start of the blank that was added last, if it ends at `end`.
    pub(crate) fn last_ending_at(&self, end: usize) -> Option<usize> {
        self.blanks.last().filter(|range| range.end == end).map(|range| range.start)
    }

    /// What was erased, in the order of the text.
    pub(crate) fn constructs(&self) -> Vec<(Range<usize>, Construct)> {
        let mut constructs = self.constructs.clone();
        constructs.sort_by_key(|(range, _)| range.start);
        constructs
    }

    /// The edited text: as many UTF-16 units on each line as before, save for lines appended.
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut blanks = self.blanks.clone();
        blanks.sort_by_key(|range| range.start);
        let mut marks = self.marks.clone();
        marks.sort_by_key(|(at, _)| *at);
        let mut writer =
            Writer { text, out: String::with_capacity(text.len() + self.tail.len()), at: 0, marks, next: 0 };
        for range in blanks {
            writer.keep_until(range.start);
            writer.blank_until(range.end);
        }
        writer.keep_until(text.len());
        writer.out.push_str(&self.tail);
        writer.out
    }
}

struct Writer<'a> {
    text: &'a str,
    out: String,
    at: usize,
    marks: Vec<(usize, &'static str)>,
    next: usize,
}

impl Writer<'_> {
    fn keep_until(&mut self, end: usize) {
        if end > self.at {
            self.out.push_str(self.text.get(self.at..end).unwrap_or_default());
            self.at = end;
        }
    }

    fn blank_until(&mut self, end: usize) {
        while let Some((at, token)) = self.marks.get(self.next).copied().filter(|(at, _)| *at < end) {
            self.next += 1;
            if at < self.at {
                continue;
            }
            self.blank_plainly_until(at);
            let covered = self.units_from(at, token.len());
            self.out.push_str(token);
            for _ in token.len()..covered.1 {
                self.out.push(' ');
            }
            self.at = covered.0;
        }
        self.blank_plainly_until(end);
    }

    /// End offset and UTF-16 length of the fewest characters from `at` that hold `units` units.
    fn units_from(&self, at: usize, units: usize) -> (usize, usize) {
        let (mut end, mut length) = (at, 0);
        for c in self.text.get(at..).unwrap_or_default().chars() {
            if length >= units {
                break;
            }
            end += c.len_utf8();
            length += c.len_utf16();
        }
        (end, length)
    }

    fn blank_plainly_until(&mut self, end: usize) {
        if end > self.at {
            scan::push_blanks(self.text.get(self.at..end).unwrap_or_default(), &mut self.out);
            self.at = end;
        }
    }
}
