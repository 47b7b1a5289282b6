//! Names of types that are ours to give: made of names that are not, and each given once.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;

/// Longest name before a number is put behind it, UTF-16 units.
const NAME_UNITS_MAX: usize = 120;
/// Around the number of a name in text whose names are not given yet. No text of others has these characters: `text`
/// writes controls as escapes.
const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// `read_file` to `ReadFile`.
pub(crate) fn camel_case(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    let mut is_start = true;
    for c in text.chars().take(2 * NAME_UNITS_MAX) {
        if c == '_' || !unicode_ident::is_xid_continue(c) {
            is_start = true;
        } else if is_start {
            name.extend(c.to_uppercase());
            is_start = false;
        } else {
            name.push(c);
        }
    }
    name
}

/// A name that both languages take: normal, begun as a name begins, and not too long.
fn legal(joined: &str) -> String {
    let normal: String = joined.nfkc().filter(|c| unicode_ident::is_xid_continue(*c)).collect();
    let is_headed = normal.chars().next().is_some_and(unicode_ident::is_xid_start);
    let headed = if is_headed { normal } else { format!("Tool{normal}") };
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= NAME_UNITS_MAX
    };
    let cut: String = headed.chars().take_while(fits).collect();
    // What is cut may compose anew.
    cut.nfkc().collect()
}

/// The names that one text wants, in their order.
#[derive(Debug, Default)]
pub(crate) struct Wanted(Vec<String>);

impl Wanted {
    /// Asks for a name and answers what stands for it in text until it is given.
    pub(crate) fn ask(&mut self, joined: &str) -> String {
        self.0.push(legal(joined));
        format!("{OPEN}{}{CLOSE}", self.0.len() - 1)
    }
}

/// Whether text has names that are not given yet.
pub(crate) fn has_slots(text: &str) -> bool {
    text.contains(OPEN)
}

/// Names given so far; a name is never given twice.
#[derive(Debug)]
pub(crate) struct Given {
    taken: HashSet<String>,
    /// The number to try next behind a name.
    next: HashMap<String, usize>,
}

impl Given {
    pub(crate) fn new(reserved: &[&str]) -> Self {
        Self { taken: reserved.iter().map(|name| (*name).to_owned()).collect(), next: HashMap::new() }
    }

    /// Gives every name that is wanted.
    pub(crate) fn give(&mut self, wanted: &Wanted) -> Vec<String> {
        wanted.0.iter().map(|base| self.give_one(base)).collect()
    }

    fn give_one(&mut self, base: &str) -> String {
        if self.taken.insert(base.to_owned()) {
            return base.to_owned();
        }
        let number = self.next.entry(base.to_owned()).or_insert(2);
        loop {
            let name = format!("{base}{number}");
            *number += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Text with the names that were given.
pub(crate) fn filled(text: &str, names: &[String]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut pieces = text.split(OPEN);
    filled.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (slot, rest) = piece.split_once(CLOSE).unwrap_or(("", piece));
        filled
            .push_str(slot.parse().ok().and_then(|index: usize| names.get(index)).map_or("", String::as_str));
        filled.push_str(rest);
    }
    filled
}
