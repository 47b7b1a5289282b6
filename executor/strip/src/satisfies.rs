//! The parser gives `satisfies` no precedence: it reads `a + b satisfies T` as `a + (b satisfies T)`, where TypeScript
//! reads it like `as`. Where that could matter, the operator is shown to it as `as`.

use deno_ast::swc::ast::*;
use deno_ast::swc::common::Spanned;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};

use crate::parse::{Fault, offset};
use crate::scan;

/// The operator.
const WORD: &str = "satisfies";
/// What the parser is shown instead: the same length.
const SHOWN: &str = "as       ";

/// Reads a text with `parse`, `satisfies` bound as TypeScript binds it.
pub(crate) fn read(text: &str, parse: impl Fn(&str) -> Result<Module, Fault>) -> Result<Module, Fault> {
    let tree = parse(text)?;
    let mut finder = Finder { text, places: Vec::new(), matters: false };
    tree.visit_with(&mut finder);
    if !finder.matters {
        return Ok(tree);
    }
    finder.places.sort_unstable();
    parse(&shown(text, &finder.places))
}

fn shown(text: &str, places: &[usize]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for at in places {
        out.push_str(text.get(from..*at).unwrap_or_default());
        out.push_str(SHOWN);
        from = at + WORD.len();
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

struct Finder<'a> {
    text: &'a str,
    places: Vec<usize>,
    matters: bool,
}

impl Visit for Finder<'_> {
    fn visit_ts_satisfies_expr(&mut self, check: &TsSatisfiesExpr) {
        let at = scan::skip_trivia(self.text, offset(check.expr.span().hi));
        if scan::word(self.text, at) == WORD {
            self.places.push(at);
        }
        check.expr.visit_with(self);
    }

    fn visit_bin_expr(&mut self, binary: &BinExpr) {
        self.matters |= is_bound(&binary.right);
        binary.visit_children_with(self);
    }
}

/// Whether a `satisfies` stands in an operand without parentheses of its own.
fn is_bound(operand: &Expr) -> bool {
    match operand {
        Expr::TsSatisfies(_) => true,
        Expr::TsAs(cast) => is_bound(&cast.expr),
        Expr::TsConstAssertion(constant) => is_bound(&constant.expr),
        Expr::Bin(binary) => is_bound(&binary.left) || is_bound(&binary.right),
        _ => false,
    }
}
