//! TypeScript's own meaning, on the tree: types dropped, nothing else touched. What the blanked text is compared with.

use deno_ast::swc::ast::*;
use deno_ast::swc::common::DUMMY_SP;
use deno_ast::swc::common::util::take::Take;
use deno_ast::swc::ecma_visit::{VisitMut, VisitMutWith};

use crate::erase;
use crate::shape::{DefaultExport, Plan};

/// Drops the types of a program, and writes out what its plan adds.
pub(crate) fn erase(tree: &mut Module, plan: &Plan) {
    default_export(tree, plan);
    normalise(tree);
}

/// Brings a tree to the form in which two are compared.
pub(crate) fn normalise(tree: &mut Module) {
    tree.visit_mut_with(&mut Eraser);
    tree.shebang = None;
}

fn default_export(tree: &mut Module, plan: &Plan) {
    let mut appended = None;
    for item in &mut tree.body {
        let ModuleItem::ModuleDecl(declaration) = item else { continue };
        match declaration {
            ModuleDecl::ExportDefaultDecl(ExportDefaultDecl { decl: DefaultDecl::Fn(function), .. })
                if function.function.body.is_some() =>
            {
                let function = function.take();
                *item = match (plan, function.ident.clone()) {
                    (Plan::Factory(DefaultExport::Declaration(_), _), Some(ident)) => {
                        appended = Some(ident.clone());
                        let declared = FnDecl { ident, declare: false, function: function.function };
                        ModuleItem::Stmt(Stmt::Decl(Decl::Fn(declared)))
                    }
                    _ => completion(Box::new(Expr::Fn(function)), plan),
                };
            }
            ModuleDecl::ExportDefaultExpr(export) => *item = completion(export.expr.take(), plan),
            // Every other export that got here declares types.
            _ => *item = ModuleItem::Stmt(Stmt::Empty(EmptyStmt { span: DUMMY_SP })),
        }
    }
    if let Some(name) = appended {
        let value = Some(Box::new(Expr::Ident(name)));
        tree.body.push(ModuleItem::Stmt(Stmt::Return(ReturnStmt { span: DUMMY_SP, arg: value })));
    }
}

fn completion(value: Box<Expr>, plan: &Plan) -> ModuleItem {
    ModuleItem::Stmt(if plan.is_expression() {
        Stmt::Expr(ExprStmt { span: DUMMY_SP, expr: value })
    } else {
        Stmt::Return(ReturnStmt { span: DUMMY_SP, arg: Some(value) })
    })
}

struct Eraser;

impl VisitMut for Eraser {
    fn visit_mut_stmt(&mut self, statement: &mut Stmt) {
        if erase::is_type_only(statement) {
            *statement = Stmt::Empty(EmptyStmt { span: DUMMY_SP });
        } else {
            statement.visit_mut_children_with(self);
        }
    }

    fn visit_mut_stmts(&mut self, statements: &mut Vec<Stmt>) {
        statements.visit_mut_children_with(self);
        statements.retain(|statement| !matches!(statement, Stmt::Empty(_)));
    }

    fn visit_mut_module_items(&mut self, items: &mut Vec<ModuleItem>) {
        items.visit_mut_children_with(self);
        items.retain(|item| !matches!(item, ModuleItem::Stmt(Stmt::Empty(_))));
    }

    fn visit_mut_class_members(&mut self, members: &mut Vec<ClassMember>) {
        members
            .retain(|member| !erase::is_type_only_member(member) && !matches!(member, ClassMember::Empty(_)));
        members.visit_mut_children_with(self);
    }

    fn visit_mut_opt_ts_type_ann(&mut self, annotation: &mut Option<Box<TsTypeAnn>>) {
        *annotation = None;
    }

    fn visit_mut_opt_ts_type_param_decl(&mut self, parameters: &mut Option<Box<TsTypeParamDecl>>) {
        *parameters = None;
    }

    fn visit_mut_opt_ts_type_param_instantiation(
        &mut self,
        arguments: &mut Option<Box<TsTypeParamInstantiation>>,
    ) {
        *arguments = None;
    }

    fn visit_mut_opt_accessibility(&mut self, accessibility: &mut Option<Accessibility>) {
        *accessibility = None;
    }

    fn visit_mut_class(&mut self, class: &mut Class) {
        class.is_abstract = false;
        class.implements.clear();
        class.visit_mut_children_with(self);
    }

    fn visit_mut_class_prop(&mut self, property: &mut ClassProp) {
        property.is_optional = false;
        property.is_override = false;
        property.readonly = false;
        property.definite = false;
        property.visit_mut_children_with(self);
    }

    fn visit_mut_private_prop(&mut self, property: &mut PrivateProp) {
        property.is_optional = false;
        property.is_override = false;
        property.readonly = false;
        property.definite = false;
        property.visit_mut_children_with(self);
    }

    fn visit_mut_class_method(&mut self, method: &mut ClassMethod) {
        method.is_optional = false;
        method.is_override = false;
        method.visit_mut_children_with(self);
    }

    fn visit_mut_private_method(&mut self, method: &mut PrivateMethod) {
        method.is_optional = false;
        method.is_override = false;
        method.visit_mut_children_with(self);
    }

    fn visit_mut_constructor(&mut self, constructor: &mut Constructor) {
        constructor.is_optional = false;
        if let Some(ParamOrTsParamProp::Param(first)) = constructor.params.first()
            && is_this(&first.pat)
        {
            constructor.params.remove(0);
        }
        constructor.visit_mut_children_with(self);
    }

    fn visit_mut_setter_prop(&mut self, setter: &mut SetterProp) {
        setter.this_param = None;
        setter.visit_mut_children_with(self);
    }

    fn visit_mut_function(&mut self, function: &mut Function) {
        if function.params.first().is_some_and(|first| is_this(&first.pat)) {
            function.params.remove(0);
        }
        function.visit_mut_children_with(self);
    }

    fn visit_mut_ident(&mut self, ident: &mut Ident) {
        ident.optional = false;
    }

    fn visit_mut_array_pat(&mut self, pattern: &mut ArrayPat) {
        pattern.optional = false;
        pattern.visit_mut_children_with(self);
    }

    fn visit_mut_object_pat(&mut self, pattern: &mut ObjectPat) {
        pattern.optional = false;
        pattern.visit_mut_children_with(self);
    }

    fn visit_mut_var_declarator(&mut self, declarator: &mut VarDeclarator) {
        declarator.definite = false;
        declarator.visit_mut_children_with(self);
    }

    fn visit_mut_expr(&mut self, expression: &mut Expr) {
        loop {
            let inner = match expression {
                Expr::TsAs(cast) => cast.expr.take(),
                Expr::TsSatisfies(check) => check.expr.take(),
                Expr::TsConstAssertion(constant) => constant.expr.take(),
                Expr::TsTypeAssertion(assertion) => assertion.expr.take(),
                Expr::TsNonNull(sure) => sure.expr.take(),
                Expr::TsInstantiation(instantiation) => instantiation.expr.take(),
                _ => break,
            };
            *expression = *inner;
        }
        expression.visit_mut_children_with(self);
    }

    fn visit_mut_simple_assign_target(&mut self, target: &mut SimpleAssignTarget) {
        loop {
            let inner = match target {
                SimpleAssignTarget::TsAs(cast) => cast.expr.take(),
                SimpleAssignTarget::TsSatisfies(check) => check.expr.take(),
                SimpleAssignTarget::TsTypeAssertion(assertion) => assertion.expr.take(),
                SimpleAssignTarget::TsNonNull(sure) => sure.expr.take(),
                SimpleAssignTarget::TsInstantiation(instantiation) => instantiation.expr.take(),
                _ => break,
            };
            // What is no target stays out of the tree, and the comparison fails.
            let Ok(inner) = SimpleAssignTarget::try_from(inner) else { return };
            *target = inner;
        }
        target.visit_mut_children_with(self);
    }

    fn visit_mut_pat(&mut self, pattern: &mut Pat) {
        pattern.visit_mut_children_with(self);
        if let Pat::Expr(expression) = pattern
            && let Expr::Ident(ident) = &**expression
        {
            *pattern = Pat::Ident(BindingIdent { id: ident.clone(), type_ann: None });
        }
    }
}

fn is_this(pattern: &Pat) -> bool {
    matches!(pattern, Pat::Ident(binding) if &*binding.id.sym == "this")
}
