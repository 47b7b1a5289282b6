//! The last word: the blanked text read as JavaScript has to be the tree that TypeScript means. Whatever is not, is
//! refused here, with the construct that would have gone wrong.

use std::ops::Range;

use deno_ast::swc::ast::*;
use deno_ast::swc::common::{EqIgnoreSpan, Spanned};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};

use crate::early;
use crate::edit::{Construct, Edits};
use crate::oracle;
use crate::parse::{self, Fault, offset};
use crate::refusal::Refusal;
use crate::shape::Plan;

/// Compares the blanked text with the tree that it has to be.
pub(crate) fn verify(source: &str, expected: &Module, plan: &Plan, edits: &Edits) -> Result<(), Refusal> {
    let read = if plan.is_expression() { parse::javascript_expression } else { parse::javascript };
    let mut found = read(source).map_err(|fault| unreadable(source, &fault, edits))?;
    early::check(source, &found)?;
    oracle::normalise(&mut found);
    if found.body.eq_ignore_span(&expected.body) {
        return Ok(());
    }
    let at = first_difference(expected, &found).unwrap_or(0);
    Err(blame(source, at, edits, None))
}

/// A text that was TypeScript and is no JavaScript: if something erased stands before the fault on its statement it is
/// to blame; else the program breaks a rule that the first reading did not look at.
fn unreadable(source: &str, fault: &Fault, edits: &Edits) -> Refusal {
    if touches_erased(source, fault.offset, edits) {
        return blame(source, fault.offset, edits, Some(&fault.message));
    }
    Refusal::at(source, fault.offset, fault.message.clone())
}

fn touches_erased(source: &str, at: usize, edits: &Edits) -> bool {
    let line_start = source.get(..at).and_then(|before| before.rfind('\n')).unwrap_or(0);
    edits.constructs().iter().any(|(range, _)| range.start <= at && range.end >= line_start)
}

fn blame(source: &str, at: usize, edits: &Edits, detail: Option<&str>) -> Refusal {
    let constructs = edits.constructs();
    let culprit = culprit(&constructs, at);
    let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
    match culprit {
        Some((range, construct)) => {
            Refusal::at(source, range.start, format!("{}{detail}", advice(*construct)))
        }
        None => Refusal::at(
            source,
            at,
            format!("erasing the types here would change what the program does{detail}"),
        ),
    }
}

/// The construct that most likely changed the meaning at a place: one that often does and ends after it, else the last
/// one before it.
fn culprit(constructs: &[(Range<usize>, Construct)], at: usize) -> Option<&(Range<usize>, Construct)> {
    let often = |construct: &Construct| {
        matches!(construct, Construct::As(Some(_)) | Construct::Satisfies(Some(_)) | Construct::Assertion)
    };
    constructs
        .iter()
        .find(|(range, construct)| range.end > at && often(construct))
        .or_else(|| constructs.iter().rfind(|(range, _)| range.start <= at))
        .or_else(|| constructs.first())
}

fn advice(construct: Construct) -> String {
    match construct {
        Construct::As(Some(operator)) => grouped("as", operator),
        Construct::Satisfies(Some(operator)) => grouped("satisfies", operator),
        Construct::As(None) => {
            "`as` cannot be erased here without changing what the program does; put parentheses \
                                around `x as T`"
                .to_owned()
        }
        Construct::Satisfies(None) => {
            "`satisfies` cannot be erased here without changing what the program does; put \
                                       parentheses around `x satisfies T`"
                .to_owned()
        }
        Construct::Assertion => {
            "a type assertion `<T>x` cannot be erased here without changing what the program \
                                 does; write `(x as T)`"
                .to_owned()
        }
        Construct::NonNull => {
            "the non-null mark `!` cannot be erased here without changing what the program does; \
                               put parentheses around `x!`"
                .to_owned()
        }
        Construct::TypeArguments => {
            "the type arguments cannot be erased here without changing what the program \
                                     does; put parentheses around the expression that has them"
                .to_owned()
        }
        Construct::TypeParameters => {
            "the type parameters cannot be erased here without changing what the program \
                                      does; write the function on one line, or in parentheses"
                .to_owned()
        }
        Construct::Annotation => {
            "the type annotation cannot be erased here without changing what the program does; \
                                  end the line with `;` or leave the type out"
                .to_owned()
        }
        Construct::Declaration => {
            "the type declaration cannot be erased here without changing what the program \
                                   does; move it to a line of its own, outside of other statements"
                .to_owned()
        }
    }
}

fn grouped(keyword: &str, operator: &str) -> String {
    format!(
        "`{keyword}` takes in the whole of `a {operator} b` before it, so erasing it would change what the program \
         computes; write `(a {operator} b) {keyword} T`, or `a {operator} (b {keyword} T)` if that is meant"
    )
}

/// Where two trees first part, as a byte offset.
fn first_difference(expected: &Module, found: &Module) -> Option<usize> {
    let (mut left, mut right) = (Outline::default(), Outline::default());
    expected.visit_with(&mut left);
    found.visit_with(&mut right);
    let differ = left.nodes.iter().zip(&right.nodes).position(|(left, right)| left != right);
    let index = differ.unwrap_or(left.nodes.len().min(right.nodes.len()).saturating_sub(1));
    let (at, _) = left.nodes.get(index).or_else(|| right.nodes.get(index))?;
    Some(*at)
}

/// The statements and expressions of a tree in order, as start and kind.
#[derive(Default)]
struct Outline {
    nodes: Vec<(usize, u8)>,
}

impl Visit for Outline {
    fn visit_stmt(&mut self, statement: &Stmt) {
        self.nodes.push((offset(statement.span().lo), kind_of_statement(statement)));
        statement.visit_children_with(self);
    }

    fn visit_expr(&mut self, expression: &Expr) {
        self.nodes.push((offset(expression.span().lo), kind_of_expression(expression)));
        expression.visit_children_with(self);
    }
}

const fn kind_of_statement(statement: &Stmt) -> u8 {
    match statement {
        Stmt::Block(_) => 100,
        Stmt::Expr(_) => 101,
        Stmt::Decl(_) => 102,
        Stmt::Return(_) => 103,
        Stmt::Labeled(_) => 104,
        Stmt::If(_) => 105,
        _ => 106,
    }
}

const fn kind_of_expression(expression: &Expr) -> u8 {
    match expression {
        Expr::Bin(binary) => binary.op as u8,
        Expr::Call(_) => 50,
        Expr::Member(_) => 51,
        Expr::Arrow(_) => 52,
        Expr::Fn(_) => 53,
        Expr::Object(_) => 54,
        Expr::Array(_) => 55,
        Expr::Paren(_) => 56,
        Expr::Seq(_) => 57,
        Expr::Cond(_) => 58,
        Expr::OptChain(_) => 59,
        Expr::New(_) => 60,
        Expr::Ident(_) => 61,
        Expr::Unary(_) => 62,
        Expr::Assign(_) => 63,
        Expr::TaggedTpl(_) => 64,
        Expr::Yield(_) => 65,
        _ => 66,
    }
}
