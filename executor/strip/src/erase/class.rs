//! Classes and their members: modifiers, names, and the `;` that keeps one field from running on into the next.

use deno_ast::swc::ast::*;
use deno_ast::swc::common::{Span, Spanned};
use deno_ast::swc::ecma_visit::VisitWith;

use super::Eraser;
use super::words::{ACCESSOR, PARAMETER_PROPERTY};
use crate::parse::offset;
use crate::scan;

impl Eraser<'_> {
    pub(super) fn class(&mut self, class: &Class, name: Option<&Ident>) {
        self.decorators(&class.decorators);
        let start = offset(class.span.lo);
        if class.is_abstract && scan::word(self.text, start) == "abstract" {
            self.annotation(start..start + "abstract".len());
        }
        if let Some(parameters) = &class.type_params {
            parameters.visit_with(self);
        }
        if let Some(parent) = &class.super_class {
            self.operand(parent, false);
            parent.visit_with(self);
        }
        if let Some(arguments) = &class.super_type_params {
            arguments.visit_with(self);
        }
        self.implements(class, name);
        class.body.visit_with(self);
    }

    /// Blanks `implements A, B`, which follows `after`.
    fn implements(&mut self, class: &Class, name: Option<&Ident>) {
        let Some(last) = class.implements.last() else { return };
        let after = [
            class.super_type_params.as_ref().map(|arguments| arguments.span.hi),
            class.super_class.as_ref().map(|parent| parent.span().hi),
            class.type_params.as_ref().map(|parameters| parameters.span.hi),
            name.map(|name| name.span.hi),
        ];
        let first = class.implements.first().map_or(last.span.lo, |first| first.span.lo);
        let from = after.into_iter().flatten().max().map_or_else(|| offset(class.span.lo), offset);
        let before = self.text.get(from..offset(first)).unwrap_or_default();
        if let Some(keyword) = before.rfind("implements") {
            self.annotation(from + keyword..offset(last.span.hi));
        }
    }

    pub(super) fn member(&mut self, member: &ClassMember) {
        match member {
            ClassMember::Constructor(constructor) => {
                self.modifiers(constructor.span, offset(constructor.key.span().lo));
                self.constructor(constructor);
            }
            ClassMember::Method(method) => {
                self.modifiers(method.span, offset(method.key.span().lo));
                method.key.visit_with(self);
                if method.is_optional {
                    self.mark_after(offset(method.key.span().hi), b"?");
                }
                method.function.visit_with(self);
            }
            ClassMember::PrivateMethod(method) => {
                self.modifiers(method.span, offset(method.key.span.lo));
                if method.is_optional {
                    self.mark_after(offset(method.key.span.hi), b"?");
                }
                method.function.visit_with(self);
            }
            ClassMember::ClassProp(property) => {
                self.decorators(&property.decorators);
                self.modifiers(property.span, offset(property.key.span().lo));
                self.static_by_itself(&property.key);
                property.key.visit_with(self);
                if property.is_optional || property.definite {
                    self.mark_after(offset(property.key.span().hi), b"?!");
                }
                self.type_annotation(property.type_ann.as_deref());
                property.value.visit_with(self);
                self.end_statement(property.span);
            }
            ClassMember::PrivateProp(property) => {
                self.decorators(&property.decorators);
                self.modifiers(property.span, offset(property.key.span.lo));
                if property.is_optional || property.definite {
                    self.mark_after(offset(property.key.span.hi), b"?!");
                }
                self.type_annotation(property.type_ann.as_deref());
                property.value.visit_with(self);
                self.end_statement(property.span);
            }
            ClassMember::AutoAccessor(accessor) => self.refuse(offset(accessor.span.lo), ACCESSOR),
            ClassMember::StaticBlock(block) => block.visit_with(self),
            ClassMember::TsIndexSignature(_) | ClassMember::Empty(_) => {}
        }
    }

    fn constructor(&mut self, constructor: &Constructor) {
        for (index, parameter) in constructor.params.iter().enumerate() {
            match parameter {
                ParamOrTsParamProp::TsParamProp(property) => {
                    self.refuse(offset(property.span.lo), PARAMETER_PROPERTY);
                }
                ParamOrTsParamProp::Param(parameter) => {
                    self.decorators(&parameter.decorators);
                    let next = constructor.params.get(index + 1).map(|next| offset(next.span().lo));
                    if !(index == 0 && self.this_parameter(&parameter.pat, next)) {
                        parameter.pat.visit_with(self);
                    }
                }
            }
        }
        constructor.body.visit_with(self);
    }

    /// Blanks the words of TypeScript among a member's modifiers. A `;` takes the place of one that comes first, so
    /// that the field before it does not run on into a computed name, a generator or an accessor.
    fn modifiers(&mut self, member: Span, key: usize) {
        let start = offset(member.lo);
        let mut at = start;
        while at < key {
            let word = scan::word(self.text, at);
            if word == "declare" {
                self.refuse(at, "`declare` stands on fields without a value only; leave it out here");
            }
            if is_modifier(word) {
                self.annotation(at..at + word.len());
                if at == start {
                    self.edits.mark(at, ";");
                }
            }
            at = self.next_modifier(at, word);
        }
    }

    /// Where the word after a modifier starts. To TypeScript, a line break after one of its own makes it a name.
    fn next_modifier(&mut self, at: usize, word: &str) -> usize {
        let next = scan::skip_trivia(self.text, at + word.len().max(1));
        if is_modifier(word) && scan::has_line_break(self.text, at, next) {
            self.refuse(
                at,
                format!("`{word}` ends its line here and is the name of a field; join the two lines"),
            );
        }
        next
    }

    /// Refuses a field named `static` at the end of its line: to TypeScript it can be a modifier of what follows.
    fn static_by_itself(&mut self, key: &PropName) {
        let end = offset(key.span().hi);
        let next = scan::skip_trivia(self.text, end);
        let named = matches!(key, PropName::Ident(name) if &*name.sym == "static");
        if named
            && scan::has_line_break(self.text, end, next)
            && !matches!(scan::byte(self.text, next), b';' | b'}')
        {
            self.refuse(
                offset(key.span().lo),
                "`static` ends its line here; end it with `;`, or join the two lines",
            );
        }
    }

    /// Looks at the modifiers of a member that is blanked whole.
    pub(super) fn modifiers_of_erased(&mut self, member: &ClassMember) {
        let (start, key) = match member {
            ClassMember::ClassProp(property) => (property.span.lo, property.key.span().lo),
            ClassMember::Method(method) => (method.span.lo, method.key.span().lo),
            ClassMember::PrivateMethod(method) => (method.span.lo, method.key.span.lo),
            ClassMember::Constructor(constructor) => (constructor.span.lo, constructor.key.span().lo),
            _ => return,
        };
        let mut at = offset(start);
        while at < offset(key) {
            at = self.next_modifier(at, scan::word(self.text, at));
        }
    }
}

/// Whether a word before a member's name belongs to TypeScript.
fn is_modifier(word: &str) -> bool {
    matches!(word, "public" | "private" | "protected" | "readonly" | "override" | "abstract" | "declare")
}
