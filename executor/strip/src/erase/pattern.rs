//! Where names and patterns end in the text. The parser's spans count annotations in for some and not for others.

use deno_ast::swc::ast::*;
use deno_ast::swc::common::Spanned;

use crate::parse::offset;
use crate::scan;

/// Bytes of a name as it is written, which escapes make longer than its value.
pub(super) fn written_length(text: &str, binding: &BindingIdent) -> usize {
    let start = offset(binding.id.span.lo);
    let rest = text.get(start..).unwrap_or_default();
    if rest.starts_with(&*binding.id.sym) {
        return binding.id.sym.len();
    }
    let mut length = 0;
    let mut braces = false;
    for c in rest.chars() {
        let inside = braces || c == '\\' || c == '_' || c == '$' || c.is_alphanumeric() || !c.is_ascii();
        let opens = c == '{' && rest.get(..length).is_some_and(|before| before.ends_with("\\u"));
        if !(inside || opens) {
            break;
        }
        braces = (braces || opens) && c != '}';
        length += c.len_utf8();
    }
    length
}

/// Where a pattern ends, its annotation counted in.
pub(super) fn pattern_end(text: &str, pattern: &Pat) -> usize {
    let (own, annotation) = match pattern {
        Pat::Ident(binding) => {
            (offset(binding.id.span.lo) + written_length(text, binding), binding.type_ann.as_ref())
        }
        Pat::Array(array) => (array_end(text, array), array.type_ann.as_ref()),
        Pat::Object(object) => (object_end(text, object), object.type_ann.as_ref()),
        Pat::Rest(rest) => (pattern_end(text, &rest.arg), rest.type_ann.as_ref()),
        Pat::Assign(assign) => (offset(assign.right.span().hi), None),
        Pat::Expr(_) | Pat::Invalid(_) => (offset(pattern.span().hi), None),
    };
    annotation.map_or(own, |annotation| offset(annotation.span.hi).max(own))
}

pub(super) fn array_end(text: &str, pattern: &ArrayPat) -> usize {
    let last = pattern.elems.iter().flatten().next_back();
    let from = last.map_or(offset(pattern.span.lo) + 1, |last| pattern_end(text, last));
    closing(text, from, b']')
}

pub(super) fn object_end(text: &str, pattern: &ObjectPat) -> usize {
    let from = match pattern.props.last() {
        None => offset(pattern.span.lo) + 1,
        Some(ObjectPatProp::KeyValue(pair)) => pattern_end(text, &pair.value),
        Some(ObjectPatProp::Assign(assign)) => offset(assign.span.hi),
        Some(ObjectPatProp::Rest(rest)) => pattern_end(text, &rest.arg),
    };
    closing(text, from, b'}')
}

/// Offset after the bracket that follows `from`, commas skipped.
fn closing(text: &str, from: usize, bracket: u8) -> usize {
    let mut at = scan::skip_trivia(text, from);
    while scan::byte(text, at) == b',' {
        at = scan::skip_trivia(text, at + 1);
    }
    if scan::byte(text, at) == bracket { at + 1 } else { at }
}
