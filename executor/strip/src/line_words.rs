//! `declare`, `namespace` and `interface` are names when a line break follows them; the parser takes them for keywords
//! all the same, and would erase a class that TypeScript keeps. It is shown another name in their place.

use deno_ast::swc::ast::*;
use deno_ast::swc::atoms::Atom;
use deno_ast::swc::common::Spanned;
use deno_ast::swc::ecma_visit::{Visit, VisitMut, VisitMutWith, VisitWith};

use crate::parse::{Fault, offset};
use crate::scan;

const WORDS: [&str; 3] = ["declare", "namespace", "interface"];

/// Reads a text with `parse`, these words read as the names they are.
pub(crate) fn read(text: &str, parse: impl Fn(&str) -> Result<Module, Fault>) -> Result<Module, Fault> {
    let mut places = find(text);
    // Some stand in strings or comments: those the parser does not give back as names, and they stay as they are.
    while !places.is_empty() {
        let Ok(mut tree) = parse(&masked(text, &places)) else { break };
        let mut restorer = Restorer { places: &places, found: Vec::new() };
        tree.visit_mut_with(&mut restorer);
        let mut found = restorer.found;
        found.sort_unstable();
        found.dedup();
        if found.len() == places.len() {
            return Ok(tree);
        }
        places = found;
    }
    let tree = parse(text)?;
    match find(text).into_iter().find(|(at, _)| starts_declaration(&tree, *at)) {
        Some((at, word)) => Err(Fault {
            message: format!("`{word}` ends its line here and is no keyword; join the two lines"),
            offset: at,
        }),
        None => Ok(tree),
    }
}

/// Whether the parser took the word at a place for the start of a declaration.
fn starts_declaration(tree: &Module, at: usize) -> bool {
    let mut finder = Declarations { at, found: false };
    tree.visit_with(&mut finder);
    finder.found
}

struct Declarations {
    at: usize,
    found: bool,
}

impl Visit for Declarations {
    fn visit_decl(&mut self, declaration: &Decl) {
        self.found |= offset(declaration.span().lo) == self.at;
        declaration.visit_children_with(self);
    }
}

/// Words with a line break and then a name after them.
fn find(text: &str) -> Vec<(usize, &'static str)> {
    let mut places = Vec::new();
    for word in WORDS {
        for (at, _) in text.match_indices(word) {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let end = at + word.len();
            let next = scan::skip_trivia(text, end);
            let alone = before.is_none_or(|c| !continues_name(c) && c != '.');
            if alone && scan::has_line_break(text, end, next) && starts_name(text, next) {
                places.push((at, word));
            }
        }
    }
    places.sort_unstable();
    places
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '\\' | '\u{200c}' | '\u{200d}')
}

fn starts_name(text: &str, at: usize) -> bool {
    text.get(at..)
        .and_then(|rest| rest.chars().next())
        .is_some_and(|c| continues_name(c) && !c.is_ascii_digit())
}

/// The text with `$` for the first letter of each word.
fn masked(text: &str, places: &[(usize, &'static str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in places {
        out.push_str(text.get(from..*at).unwrap_or_default());
        out.push('$');
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

struct Restorer<'a> {
    places: &'a [(usize, &'static str)],
    found: Vec<(usize, &'static str)>,
}

impl Restorer<'_> {
    fn restore(&mut self, at: usize, name: &mut Atom) {
        if let Ok(index) = self.places.binary_search_by_key(&at, |(place, _)| *place)
            && let Some(place) = self.places.get(index)
        {
            *name = Atom::from(place.1);
            self.found.push(*place);
        }
    }
}

impl VisitMut for Restorer<'_> {
    fn visit_mut_ident(&mut self, ident: &mut Ident) {
        self.restore(offset(ident.span.lo), &mut ident.sym);
    }

    fn visit_mut_ident_name(&mut self, name: &mut IdentName) {
        self.restore(offset(name.span.lo), &mut name.sym);
    }
}
