//! From the TypeScript tree to the edits that leave JavaScript in the text. Refuses what has run-time meaning that
//! blanks cannot keep. Where a blank would join what stood apart, a `;` or a parenthesis goes into the blank; what
//! slips through all the same is found by [`crate::verify`].

use std::ops::Range;

use deno_ast::swc::ast::*;
use deno_ast::swc::common::{Span, Spanned};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};

use crate::edit::{Construct, Edits};
use crate::parse::{offset, range};
use crate::refusal::Refusal;
use crate::scan;
use crate::shape::{DefaultExport, Plan};

mod class;
mod pattern;
mod words;

use pattern::{array_end, object_end, pattern_end, written_length};
use words::{DECORATOR, ENUM, EXPORT, IMPORT, JSX, NAMESPACE, USING};

/// The edits for a program.
pub(crate) fn erase(text: &str, tree: &Module, plan: &Plan) -> Result<Edits, Refusal> {
    let mut eraser = Eraser { text, edits: Edits::default(), refused: None };
    eraser.program(tree, plan);
    match eraser.refused {
        Some((at, message)) => Err(Refusal::at(text, at, message)),
        None => Ok(eraser.edits),
    }
}

/// Whether a statement means nothing when the program runs.
pub(crate) fn is_type_only(statement: &Stmt) -> bool {
    let Stmt::Decl(declaration) = statement else { return false };
    declaration_is_type_only(declaration)
}

/// Whether a declaration means nothing when the program runs.
pub(crate) fn declaration_is_type_only(declaration: &Decl) -> bool {
    match declaration {
        Decl::TsInterface(_) | Decl::TsTypeAlias(_) => true,
        Decl::Class(class) => class.declare,
        Decl::Fn(function) => function.declare || function.function.body.is_none(),
        Decl::Var(variables) => variables.declare,
        // `declare module "x";` has no body; `declare global` without one is no declaration to TypeScript.
        Decl::TsModule(module) if module.declare => module.body.is_some() || !module.global,
        Decl::TsModule(module) => holds_only_types(module.body.as_ref()),
        Decl::Using(_) | Decl::TsEnum(_) => false,
    }
}

/// Whether a namespace makes no value: TypeScript emits nothing for it.
fn holds_only_types(body: Option<&TsNamespaceBody>) -> bool {
    match body {
        None => false,
        Some(TsNamespaceBody::TsNamespaceDecl(inner)) => holds_only_types(Some(&inner.body)),
        Some(TsNamespaceBody::TsModuleBlock(block)) => block.body.iter().all(item_is_type_only),
    }
}

fn item_is_type_only(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::Stmt(statement) => is_type_only(statement),
        ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => declaration_is_type_only(&export.decl),
        ModuleItem::ModuleDecl(_) => false,
    }
}

/// Whether a class member means nothing when the program runs.
pub(crate) fn is_type_only_member(member: &ClassMember) -> bool {
    match member {
        ClassMember::TsIndexSignature(_) => true,
        ClassMember::ClassProp(property) => property.declare || property.is_abstract,
        ClassMember::Method(method) => method.is_abstract || method.function.body.is_none(),
        ClassMember::PrivateMethod(method) => method.is_abstract || method.function.body.is_none(),
        ClassMember::Constructor(constructor) => constructor.body.is_none(),
        ClassMember::PrivateProp(_)
        | ClassMember::Empty(_)
        | ClassMember::StaticBlock(_)
        | ClassMember::AutoAccessor(_) => false,
    }
}

struct Eraser<'a> {
    text: &'a str,
    edits: Edits,
    /// The refusal that stands first in the text.
    refused: Option<(usize, String)>,
}

impl Eraser<'_> {
    fn program(&mut self, tree: &Module, plan: &Plan) {
        for (index, item) in tree.body.iter().enumerate() {
            match item {
                ModuleItem::Stmt(statement) if plan.is_expression() => self.around_the_expression(statement),
                ModuleItem::Stmt(statement) => statement.visit_with(self),
                ModuleItem::ModuleDecl(declaration) => self.module_declaration(declaration, plan, index),
            }
        }
        if plan.is_expression() {
            self.semicolons_after(tree);
        }
    }

    /// A top-level statement of a program that must be left as one expression: nothing may be written in its blanks.
    fn around_the_expression(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Expr(statement) => statement.expr.visit_with(self),
            Stmt::Empty(empty) => self.edits.blank(range(empty.span)),
            other => {
                self.refuse_inside(other);
                self.edits.erase(range(other.span()), Construct::Declaration);
            }
        }
    }

    /// Blanks the semicolons that end the one expression.
    fn semicolons_after(&mut self, tree: &Module) {
        for item in &tree.body {
            let end = offset(item.span().hi);
            let mut at = if scan::byte(self.text, end.saturating_sub(1)) == b';' { end - 1 } else { end };
            at = scan::skip_trivia(self.text, at);
            if scan::byte(self.text, at) == b';' {
                self.edits.blank(at..at + 1);
            }
        }
    }

    fn module_declaration(&mut self, declaration: &ModuleDecl, plan: &Plan, index: usize) {
        let start = offset(declaration.span().lo);
        match declaration {
            ModuleDecl::ExportDecl(export) if declaration_is_type_only(&export.decl) => {
                self.declaration(declaration.span(), !plan.is_expression());
            }
            ModuleDecl::ExportDefaultDecl(export) => match &export.decl {
                DefaultDecl::TsInterfaceDecl(_) => {
                    self.declaration(declaration.span(), !plan.is_expression())
                }
                DefaultDecl::Fn(function) if function.function.body.is_none() => {
                    self.declaration(declaration.span(), !plan.is_expression());
                }
                DefaultDecl::Fn(function) => {
                    self.default_export(start, offset(function.function.span.lo), plan, index);
                    function.visit_with(self);
                }
                DefaultDecl::Class(_) => self.refuse(start, EXPORT),
            },
            ModuleDecl::ExportDefaultExpr(export) => {
                self.default_export(start, offset(export.expr.span().lo), plan, index);
                export.expr.visit_with(self);
                if !plan.is_expression() {
                    self.end_statement(export.span);
                }
            }
            ModuleDecl::Import(_) | ModuleDecl::TsImportEquals(_) => self.refuse(start, IMPORT),
            ModuleDecl::ExportDecl(export) if matches!(export.decl, Decl::TsEnum(_)) => {
                export.decl.visit_with(self);
            }
            ModuleDecl::ExportDecl(_)
            | ModuleDecl::ExportNamed(_)
            | ModuleDecl::ExportAll(_)
            | ModuleDecl::TsExportAssignment(_)
            | ModuleDecl::TsNamespaceExport(_) => self.refuse(start, EXPORT),
        }
    }

    /// Blanks `export default`, or writes `return` over it.
    fn default_export(&mut self, start: usize, value: usize, plan: &Plan, index: usize) {
        match plan {
            Plan::Body => self.refuse(start, EXPORT),
            Plan::Function => self.edits.blank(start..value),
            Plan::Factory(export, at) if *at == index => match export {
                DefaultExport::Declaration(name) => {
                    self.edits.blank(start..value);
                    self.edits.append(&format!("return {name};"));
                }
                DefaultExport::Expression if scan::has_line_break(self.text, start, value) => {
                    self.refuse(start, EXPORT)
                }
                DefaultExport::Expression => {
                    self.edits.blank(start..value);
                    self.edits.mark(start, "return");
                }
            },
            Plan::Factory(..) => self.refuse(start, EXPORT),
        }
    }

    fn refuse(&mut self, at: usize, message: impl Into<String>) {
        if self.refused.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
            self.refused = Some((at, message.into()));
        }
    }

    /// Looks for what is refused in a statement whose text is blanked whole.
    fn refuse_inside(&mut self, statement: &Stmt) {
        if let Stmt::Decl(declaration @ (Decl::TsEnum(_) | Decl::Using(_))) = statement {
            declaration.visit_with(self);
        }
    }

    /// Blanks a declaration that has no run-time meaning; `;` keeps what stood before it from joining what follows,
    /// and is the body of an `if` whose body it was.
    fn declaration(&mut self, span: Span, semicolon: bool) {
        let place = range(span);
        self.keywords_on_one_line(place.start);
        if semicolon {
            self.edits.mark(place.start, ";");
        }
        self.edits.erase(place, Construct::Declaration);
    }

    /// Refuses a declaration that the parser put together from words on several lines: to TypeScript, a line break
    /// after one of these makes it a name.
    fn keywords_on_one_line(&mut self, start: usize) {
        let mut at = start;
        loop {
            let word = scan::word(self.text, at);
            if !matches!(
                word,
                "export" | "declare" | "abstract" | "type" | "interface" | "namespace" | "module"
            ) {
                return;
            }
            let next = scan::skip_trivia(self.text, at + word.len());
            if word != "export" && scan::has_line_break(self.text, at, next) {
                return self.refuse(
                    at,
                    format!("`{word}` ends its line here and is no keyword; join the two lines"),
                );
            }
            at = next;
        }
    }

    /// Puts a `;` where a statement or field ends in erased text and the line end was its only terminator.
    fn end_statement(&mut self, span: Span) {
        let end = offset(span.hi);
        if let Some(start) = self.edits.last_ending_at(end) {
            self.edits.mark(start, ";");
        }
    }

    /// Refuses an operand that TypeScript takes in parentheses only: the parser reads `async as T` on the next line's
    /// `(…)` as a call.
    fn operand(&mut self, operand: &Expr, assertion_fits: bool) {
        let loose = match operand {
            Expr::TsAs(_) | Expr::TsSatisfies(_) => true,
            Expr::TsConstAssertion(constant) => {
                constant.span.lo == constant.expr.span().lo || !assertion_fits
            }
            Expr::TsTypeAssertion(_) => !assertion_fits,
            _ => false,
        };
        if loose {
            self.refuse(
                offset(operand.span().lo),
                "put parentheses around `x as T` where something follows it",
            );
        }
    }

    fn annotation(&mut self, place: Range<usize>) {
        self.edits.erase(place, Construct::Annotation);
    }

    /// Blanks the mark (`?` or `!`) that follows a name.
    fn mark_after(&mut self, end: usize, marks: &[u8]) {
        let at = scan::skip_trivia(self.text, end);
        if marks.contains(&scan::byte(self.text, at)) {
            self.annotation(at..at + 1);
        }
    }

    fn decorators(&mut self, decorators: &[Decorator]) {
        if let Some(first) = decorators.first() {
            self.refuse(offset(first.span.lo), DECORATOR);
        }
    }

    /// The name of a binding and what marks it as optional.
    fn binding(&mut self, binding: &BindingIdent) {
        if binding.optional {
            let name_end = offset(binding.id.span.lo) + written_length(self.text, binding);
            self.mark_after(name_end, b"?");
        }
        self.type_annotation(binding.type_ann.as_deref());
    }

    fn type_annotation(&mut self, annotation: Option<&TsTypeAnn>) {
        if let Some(annotation) = annotation {
            self.annotation(range(annotation.span));
        }
    }

    /// Blanks a parameter named `this`, with the comma after it.
    fn this_parameter(&mut self, parameter: &Pat, next: Option<usize>) -> bool {
        let Pat::Ident(binding) = parameter else { return false };
        if &*binding.id.sym != "this" {
            return false;
        }
        let start = offset(binding.id.span.lo);
        if let Some(next) = next {
            self.annotation(start..next);
            return true;
        }
        let end = pattern_end(self.text, parameter);
        let comma = scan::skip_trivia(self.text, end);
        let end = if scan::byte(self.text, comma) == b',' { comma + 1 } else { end };
        self.annotation(start..end);
        true
    }

    fn parameters(&mut self, parameters: &[Param]) {
        for (index, parameter) in parameters.iter().enumerate() {
            self.decorators(&parameter.decorators);
            let next = parameters.get(index + 1).map(|next| offset(next.span.lo));
            if !(index == 0 && self.this_parameter(&parameter.pat, next)) {
                parameter.pat.visit_with(self);
            }
        }
    }

    /// The type parameters of an arrow function. `async`, `return`, `yield` and `throw` may not be left alone on a
    /// line: where the parenthesis comes on a later line, it moves up.
    fn arrow_type_parameters(&mut self, arrow: &ArrowExpr) {
        let Some(parameters) = &arrow.type_params else { return };
        let place = range(parameters.span);
        let parenthesis = scan::skip_trivia(self.text, place.end);
        self.edits.erase(place.clone(), Construct::TypeParameters);
        if scan::byte(self.text, parenthesis) == b'('
            && scan::has_line_break(self.text, place.start, parenthesis)
        {
            self.edits.mark(place.start, "(");
            self.edits.blank(parenthesis..parenthesis + 1);
        }
    }

    /// The return type of an arrow function. `=>` may not start a line: where the type spans lines, `)` moves down.
    fn arrow_return_type(&mut self, arrow: &ArrowExpr) {
        let Some(annotation) = &arrow.return_type else { return };
        let place = range(annotation.span);
        self.annotation(place.clone());
        let Some(parenthesis) = self.closing_parenthesis(arrow) else { return };
        if !scan::has_line_break(self.text, parenthesis, place.end) {
            return;
        }
        let Some(last) = self.text.get(..place.end).and_then(|before| before.char_indices().last()) else {
            return;
        };
        self.edits.blank(parenthesis..parenthesis + 1);
        self.edits.mark(last.0, ")");
    }

    /// Offset of the `)` that ends an arrow function's parameters.
    fn closing_parenthesis(&self, arrow: &ArrowExpr) -> Option<usize> {
        let mut at = match arrow.params.last() {
            Some(last) => pattern_end(self.text, last),
            None => {
                let start = match &arrow.type_params {
                    Some(parameters) => offset(parameters.span.hi),
                    None if arrow.is_async => offset(arrow.span.lo) + "async".len(),
                    None => offset(arrow.span.lo),
                };
                let open = scan::skip_trivia(self.text, start);
                if scan::byte(self.text, open) != b'(' {
                    return None;
                }
                open + 1
            }
        };
        loop {
            at = scan::skip_trivia(self.text, at);
            match scan::byte(self.text, at) {
                b')' => return Some(at),
                b',' | b'?' => at += 1,
                _ => return None,
            }
        }
    }

    /// Blanks the part of `x as T` that follows `x`.
    fn postfix(&mut self, inner: &Expr, span: Span, construct: Construct) {
        inner.visit_with(self);
        let keyword = scan::skip_trivia(self.text, offset(inner.span().hi));
        let construct = match construct {
            // Shown to the parser in another word, see `satisfies`.
            Construct::As(operator) if scan::word(self.text, keyword) == "satisfies" => {
                Construct::Satisfies(operator)
            }
            other => other,
        };
        self.edits.erase(keyword..offset(span.hi), construct);
    }

    /// Refuses `x as const | y` and `x as const < y`: to TypeScript, `const | y` is the type, and `<` starts arguments.
    fn const_in_type(&mut self, end: usize) {
        let at = scan::skip_trivia(self.text, end);
        let (first, second) = (scan::byte(self.text, at), scan::byte(self.text, at + 1));
        if matches!(first, b'|' | b'&') && second != first && second != b'='
            || first == b'<' && second != b'='
        {
            self.refuse(at, "`as const` takes what follows it for a part of the type; put parentheses around `x as const`");
        }
    }

    /// Blanks the `<T>` of `<T>x`.
    fn assertion(&mut self, inner: &Expr, span: Span, type_end: usize) {
        let close = scan::skip_trivia(self.text, type_end);
        let end = if scan::byte(self.text, close) == b'>' { close + 1 } else { offset(inner.span().lo) };
        self.edits.erase(offset(span.lo)..end, Construct::Assertion);
        inner.visit_with(self);
    }
}

impl Visit for Eraser<'_> {
    fn visit_stmt(&mut self, statement: &Stmt) {
        if is_type_only(statement) {
            return self.declaration(statement.span(), true);
        }
        statement.visit_children_with(self);
        if matches!(statement, Stmt::Expr(_) | Stmt::Return(_) | Stmt::Throw(_) | Stmt::Decl(Decl::Var(_))) {
            self.end_statement(statement.span());
        }
    }

    fn visit_module_item(&mut self, item: &ModuleItem) {
        item.visit_children_with(self);
    }

    fn visit_using_decl(&mut self, declaration: &UsingDecl) {
        self.refuse(offset(declaration.span.lo), USING);
    }

    fn visit_ts_enum_decl(&mut self, declaration: &TsEnumDecl) {
        self.refuse(offset(declaration.span.lo), ENUM);
    }

    fn visit_ts_module_decl(&mut self, declaration: &TsModuleDecl) {
        self.refuse(offset(declaration.span.lo), NAMESPACE);
    }

    fn visit_ts_import_equals_decl(&mut self, declaration: &TsImportEqualsDecl) {
        self.refuse(offset(declaration.span.lo), IMPORT);
    }

    fn visit_jsx_element(&mut self, element: &JSXElement) {
        self.refuse(offset(element.span.lo), JSX);
    }

    fn visit_jsx_fragment(&mut self, fragment: &JSXFragment) {
        self.refuse(offset(fragment.span.lo), JSX);
    }

    fn visit_class_decl(&mut self, declaration: &ClassDecl) {
        self.class(&declaration.class, Some(&declaration.ident));
    }

    fn visit_class_expr(&mut self, expression: &ClassExpr) {
        self.class(&expression.class, expression.ident.as_ref());
    }

    fn visit_class_member(&mut self, member: &ClassMember) {
        if is_type_only_member(member) {
            match member {
                ClassMember::Method(method) => self.decorators(&method.function.decorators),
                ClassMember::ClassProp(property) => self.decorators(&property.decorators),
                _ => {}
            }
            self.modifiers_of_erased(member);
            return self.declaration(member.span(), true);
        }
        self.member(member);
    }

    fn visit_function(&mut self, function: &Function) {
        self.decorators(&function.decorators);
        if let Some(parameters) = &function.type_params {
            parameters.visit_with(self);
        }
        self.parameters(&function.params);
        self.type_annotation(function.return_type.as_deref());
        function.body.visit_with(self);
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.arrow_type_parameters(arrow);
        arrow.params.visit_with(self);
        self.arrow_return_type(arrow);
        arrow.body.visit_with(self);
    }

    fn visit_setter_prop(&mut self, setter: &SetterProp) {
        setter.key.visit_with(self);
        if let Some(this) = &setter.this_param {
            self.this_parameter(this, Some(offset(setter.param.span().lo)));
        }
        setter.param.visit_with(self);
        setter.body.visit_with(self);
    }

    fn visit_binding_ident(&mut self, binding: &BindingIdent) {
        self.binding(binding);
    }

    fn visit_array_pat(&mut self, pattern: &ArrayPat) {
        pattern.elems.visit_with(self);
        if pattern.optional {
            self.mark_after(array_end(self.text, pattern), b"?");
        }
        self.type_annotation(pattern.type_ann.as_deref());
    }

    fn visit_object_pat(&mut self, pattern: &ObjectPat) {
        pattern.props.visit_with(self);
        if pattern.optional {
            self.mark_after(object_end(self.text, pattern), b"?");
        }
        self.type_annotation(pattern.type_ann.as_deref());
    }

    fn visit_rest_pat(&mut self, pattern: &RestPat) {
        pattern.arg.visit_with(self);
        self.type_annotation(pattern.type_ann.as_deref());
    }

    fn visit_var_declarator(&mut self, declarator: &VarDeclarator) {
        if declarator.definite
            && let Pat::Ident(binding) = &declarator.name
        {
            let end = offset(binding.id.span.lo) + written_length(self.text, binding);
            self.mark_after(end, b"!");
        }
        declarator.name.visit_with(self);
        declarator.init.visit_with(self);
    }

    fn visit_expr(&mut self, expression: &Expr) {
        match expression {
            Expr::TsAs(cast) => self.postfix(&cast.expr, cast.span, Construct::As(operator(&cast.expr))),
            Expr::TsSatisfies(check) => {
                self.postfix(&check.expr, check.span, Construct::Satisfies(operator(&check.expr)));
            }
            Expr::TsConstAssertion(constant) if constant.span.lo == constant.expr.span().lo => {
                self.const_in_type(offset(constant.span.hi));
                self.postfix(&constant.expr, constant.span, Construct::As(operator(&constant.expr)));
            }
            Expr::TsConstAssertion(constant) => {
                let word = scan::skip_trivia(self.text, offset(constant.span.lo) + 1);
                self.assertion(&constant.expr, constant.span, word + "const".len());
            }
            Expr::TsTypeAssertion(assertion) => {
                self.assertion(&assertion.expr, assertion.span, offset(assertion.type_ann.span().hi));
            }
            Expr::TsNonNull(sure) => {
                self.operand(&sure.expr, false);
                sure.expr.visit_with(self);
                let end = offset(sure.span.hi);
                self.edits.erase(end - 1..end, Construct::NonNull);
            }
            other => other.visit_children_with(self),
        }
    }

    fn visit_assign_expr(&mut self, assignment: &AssignExpr) {
        if let AssignTarget::Simple(
            SimpleAssignTarget::TsAs(_)
            | SimpleAssignTarget::TsSatisfies(_)
            | SimpleAssignTarget::TsTypeAssertion(_),
        ) = &assignment.left
        {
            self.refuse(
                offset(assignment.left.span().lo),
                "`x as T` can be assigned to in parentheses only; write `(x as T) = …`",
            );
        }
        assignment.visit_children_with(self);
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        self.operand(&member.obj, false);
        if let Expr::TsInstantiation(instantiation) = &*member.obj {
            self.refuse(
                offset(instantiation.type_args.span.lo),
                "type arguments cannot be followed by a property; put parentheses around what stands before it",
            );
        }
        member.visit_children_with(self);
    }

    fn visit_simple_assign_target(&mut self, target: &SimpleAssignTarget) {
        match target {
            SimpleAssignTarget::TsAs(cast) => self.postfix(&cast.expr, cast.span, Construct::As(None)),
            SimpleAssignTarget::TsSatisfies(check) => {
                self.postfix(&check.expr, check.span, Construct::Satisfies(None));
            }
            SimpleAssignTarget::TsTypeAssertion(assertion) => {
                self.assertion(&assertion.expr, assertion.span, offset(assertion.type_ann.span().hi));
            }
            SimpleAssignTarget::TsNonNull(sure) => {
                sure.expr.visit_with(self);
                let end = offset(sure.span.hi);
                self.edits.erase(end - 1..end, Construct::NonNull);
            }
            other => other.visit_children_with(self),
        }
    }

    fn visit_ts_instantiation(&mut self, instantiation: &TsInstantiation) {
        self.operand(&instantiation.expr, false);
        instantiation.visit_children_with(self);
    }

    fn visit_opt_call(&mut self, call: &OptCall) {
        self.operand(&call.callee, false);
        call.callee.visit_with(self);
        call.type_args.visit_with(self);
        call.args.visit_with(self);
    }

    fn visit_new_expr(&mut self, new: &NewExpr) {
        self.operand(&new.callee, false);
        new.visit_children_with(self);
    }

    fn visit_tagged_tpl(&mut self, tagged: &TaggedTpl) {
        self.operand(&tagged.tag, false);
        tagged.visit_children_with(self);
    }

    fn visit_update_expr(&mut self, update: &UpdateExpr) {
        self.operand(&update.arg, false);
        update.visit_children_with(self);
    }

    fn visit_unary_expr(&mut self, unary: &UnaryExpr) {
        self.operand(&unary.arg, true);
        unary.visit_children_with(self);
    }

    fn visit_await_expr(&mut self, awaited: &AwaitExpr) {
        self.operand(&awaited.arg, true);
        awaited.visit_children_with(self);
    }

    fn visit_bin_expr(&mut self, binary: &BinExpr) {
        if binary.op.precedence() >= BinaryOp::Lt.precedence() {
            self.operand(&binary.right, true);
        }
        binary.visit_children_with(self);
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Expr(callee) = &call.callee {
            self.operand(callee, false);
        }
        call.callee.visit_with(self);
        call.type_args.visit_with(self);
        call.args.visit_with(self);
    }

    fn visit_ts_type_ann(&mut self, annotation: &TsTypeAnn) {
        self.annotation(range(annotation.span));
    }

    fn visit_ts_type_param_decl(&mut self, parameters: &TsTypeParamDecl) {
        self.edits.erase(range(parameters.span), Construct::TypeParameters);
    }

    fn visit_ts_type_param_instantiation(&mut self, arguments: &TsTypeParamInstantiation) {
        self.edits.erase(range(arguments.span), Construct::TypeArguments);
    }
}

fn operator(expression: &Expr) -> Option<&'static str> {
    match expression {
        Expr::Bin(binary) => Some(binary.op.as_str()),
        _ => None,
    }
}
