//! How a program is to be run, recognised by its tree, and what to tell its author when it will return nothing.

use deno_ast::swc::ast::*;
use deno_ast::swc::atoms::Atom;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};

use codemode_wire::message::Shape;

use crate::erase;

/// How the text is left for the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// A function's body.
    Body,
    /// One function expression.
    Function,
    /// A body that returns the function of its `export default`, which is the top-level item of that index.
    Factory(DefaultExport, usize),
}

/// How a default export becomes the value of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DefaultExport {
    /// A function declaration of this name: it stays one, and a last line returns it.
    Declaration(Atom),
    /// `return` takes the place of the words.
    Expression,
}

impl Plan {
    /// The same for the runner.
    pub(crate) const fn shape(&self) -> Shape {
        match self {
            Self::Body => Shape::Body,
            Self::Function => Shape::Function,
            Self::Factory(..) => Shape::Factory,
        }
    }

    /// Whether the text is left as one expression.
    pub(crate) const fn is_expression(&self) -> bool {
        matches!(self, Self::Function)
    }
}

/// Decides how a program is run.
pub(crate) fn plan(tree: &Module) -> Plan {
    let kept: Vec<(usize, &ModuleItem)> =
        tree.body.iter().enumerate().filter(|(_, item)| is_kept(item)).collect();
    if let [(_, only)] = kept.as_slice()
        && is_lone_function(only)
    {
        return Plan::Function;
    }
    let Some((index, export)) = kept.iter().find_map(|(index, item)| Some((*index, default_export(item)?)))
    else {
        return Plan::Body;
    };
    match export {
        // A program that returns at the top as well would hand that out in place of its function.
        _ if returns_value(&tree.body) => Plan::Body,
        Exported::Declaration(name) => Plan::Factory(DefaultExport::Declaration(name), index),
        Exported::Value(value) if is_last(tree, index) && is_function(tree, value) => {
            Plan::Factory(DefaultExport::Expression, index)
        }
        Exported::Value(_) => Plan::Body,
    }
}

enum Exported<'a> {
    Declaration(Atom),
    Value(&'a Expr),
}

fn default_export(item: &ModuleItem) -> Option<Exported<'_>> {
    match item {
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(export)) => Some(Exported::Value(&export.expr)),
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(ExportDefaultDecl {
            decl: DefaultDecl::Fn(function),
            ..
        })) => function.ident.as_ref().map(|ident| Exported::Declaration(ident.sym.clone())),
        _ => None,
    }
}

/// Whether an item does anything when the program runs.
fn is_kept(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::Stmt(statement) => {
            !erase::is_type_only(statement) && !matches!(statement, Stmt::Empty(_))
        }
        ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => {
            !erase::declaration_is_type_only(&export.decl)
        }
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)) => match &export.decl {
            DefaultDecl::TsInterfaceDecl(_) => false,
            DefaultDecl::Fn(function) => function.function.body.is_some(),
            DefaultDecl::Class(_) => true,
        },
        ModuleItem::ModuleDecl(_) => true,
    }
}

fn is_lone_function(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::Stmt(Stmt::Expr(statement)) => is_function_expression(&statement.expr),
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(export)) => is_function_expression(&export.expr),
        ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)) => {
            matches!(export.decl, DefaultDecl::Fn(_))
        }
        _ => false,
    }
}

/// The expression inside parentheses and types.
fn bare(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => bare(&inner.expr),
        Expr::TsAs(cast) => bare(&cast.expr),
        Expr::TsSatisfies(check) => bare(&check.expr),
        Expr::TsTypeAssertion(assertion) => bare(&assertion.expr),
        Expr::TsNonNull(sure) => bare(&sure.expr),
        Expr::TsConstAssertion(constant) => bare(&constant.expr),
        other => other,
    }
}

fn is_function_expression(expression: &Expr) -> bool {
    matches!(bare(expression), Expr::Arrow(_) | Expr::Fn(_))
}

/// Whether an expression is a function, or the name of one declared at the top.
fn is_function(tree: &Module, expression: &Expr) -> bool {
    match bare(expression) {
        Expr::Ident(ident) => functions(tree).iter().any(|function| function.name.sym == ident.sym),
        other => is_function_expression(other),
    }
}

/// Whether nothing that runs follows an item.
fn is_last(tree: &Module, index: usize) -> bool {
    tree.body.iter().skip(index + 1).all(|item| !is_kept(item) || is_function_declaration(item))
}

fn is_function_declaration(item: &ModuleItem) -> bool {
    matches!(item, ModuleItem::Stmt(Stmt::Decl(Decl::Fn(_))))
}

/// A function declared at the top of a program.
struct Declared<'a> {
    name: &'a Ident,
    is_async: bool,
    returns: bool,
}

fn functions(tree: &Module) -> Vec<Declared<'_>> {
    let mut found = Vec::new();
    for item in &tree.body {
        match item {
            ModuleItem::Stmt(Stmt::Decl(Decl::Fn(declaration))) if declaration.function.body.is_some() => {
                found.push(Declared {
                    name: &declaration.ident,
                    is_async: declaration.function.is_async,
                    returns: returns_value(&declaration.function.body),
                });
            }
            ModuleItem::Stmt(Stmt::Decl(Decl::Var(variables))) if !variables.declare => {
                found.extend(variables.decls.iter().filter_map(declared_function));
            }
            _ => {}
        }
    }
    found
}

fn declared_function(declarator: &VarDeclarator) -> Option<Declared<'_>> {
    let (Pat::Ident(binding), Some(value)) = (&declarator.name, &declarator.init) else { return None };
    let (is_async, returns) = match bare(value) {
        Expr::Arrow(arrow) => (arrow.is_async, arrow.body.is_expr() || returns_value(&arrow.body)),
        Expr::Fn(function) => (function.function.is_async, returns_value(&function.function.body)),
        _ => return None,
    };
    Some(Declared { name: &binding.id, is_async, returns })
}

/// Whether a function's own body has a `return` with a value, inner functions aside.
fn returns_value<N: VisitWith<Returns>>(node: &N) -> bool {
    let mut returns = Returns::default();
    node.visit_with(&mut returns);
    returns.with_value
}

#[derive(Default)]
struct Returns {
    with_value: bool,
}

impl Visit for Returns {
    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        self.with_value |= statement.arg.is_some();
    }

    fn visit_function(&mut self, _: &Function) {}
    fn visit_arrow_expr(&mut self, _: &ArrowExpr) {}
    fn visit_class(&mut self, _: &Class) {}
}

/// Advice for a program that will end without a value although it seems to have one.
pub(crate) fn hints(tree: &Module, plan: &Plan) -> Vec<String> {
    if *plan != Plan::Body || returns_value(&tree.body) {
        return Vec::new();
    }
    let functions = functions(tree);
    if let Some(name) = uncalled(tree, &functions) {
        return vec![format!(
            "function `{name}` is defined and never called; end the program with `return await {name}()`"
        )];
    }
    let last = tree.body.iter().rfind(|item| is_kept(item) && !is_function_declaration(item));
    match last {
        Some(ModuleItem::Stmt(Stmt::Expr(statement))) => {
            last_expression(&statement.expr, &functions).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The last of the functions that nothing refers to.
fn uncalled<'a>(tree: &Module, functions: &[Declared<'a>]) -> Option<&'a Atom> {
    let only_declares = tree.body.iter().filter(|item| is_kept(item)).all(|item| {
        is_function_declaration(item)
            || matches!(item, ModuleItem::Stmt(Stmt::Decl(Decl::Var(_) | Decl::Class(_))))
    });
    if !only_declares {
        return None;
    }
    let mut used = References::default();
    tree.visit_with(&mut used);
    functions
        .iter()
        .rfind(|function| !used.names.contains(&function.name.sym))
        .map(|function| &function.name.sym)
}

/// Names that expressions refer to.
#[derive(Default)]
struct References {
    names: std::collections::HashSet<Atom>,
    /// Functions whose bodies are being read: a call of itself does not count.
    within: Vec<Atom>,
}

impl Visit for References {
    fn visit_expr(&mut self, expression: &Expr) {
        if let Expr::Ident(ident) = expression
            && !self.within.contains(&ident.sym)
        {
            self.names.insert(ident.sym.clone());
        }
        expression.visit_children_with(self);
    }

    fn visit_prop(&mut self, property: &Prop) {
        if let Prop::Shorthand(ident) = property {
            self.names.insert(ident.sym.clone());
        }
        property.visit_children_with(self);
    }

    fn visit_fn_decl(&mut self, declaration: &FnDecl) {
        self.within.push(declaration.ident.sym.clone());
        declaration.function.visit_with(self);
        self.within.pop();
    }
}

fn last_expression(expression: &Expr, functions: &[Declared<'_>]) -> Option<String> {
    match bare(expression) {
        Expr::Await(awaited) => match bare(&awaited.arg) {
            Expr::Call(call) => awaited_call(call, functions),
            _ => Some(NOT_RETURNED.to_owned()),
        },
        Expr::Call(call) => plain_call(call, functions),
        Expr::Assign(_) | Expr::Update(_) => Some(ASSIGNED.to_owned()),
        Expr::Unary(unary) if unary.op == UnaryOp::Void || unary.op == UnaryOp::Delete => None,
        Expr::Lit(Lit::Str(_)) | Expr::Tpl(_) => Some(TEXT.to_owned()),
        _ => Some(NOT_RETURNED.to_owned()),
    }
}

fn plain_call(call: &CallExpr, functions: &[Declared<'_>]) -> Option<String> {
    let Callee::Expr(callee) = &call.callee else { return Some(NOT_RETURNED.to_owned()) };
    match bare(callee) {
        Expr::Arrow(ArrowExpr { is_async: true, .. }) => Some(IMMEDIATE.to_owned()),
        Expr::Fn(function) if function.function.is_async => Some(IMMEDIATE.to_owned()),
        Expr::Ident(ident) => match functions.iter().find(|function| function.name.sym == ident.sym) {
            Some(function) if function.is_async => Some(format!(
                "`{0}()` is neither awaited nor returned, so the program may end before it; write `return await {0}()`",
                ident.sym
            )),
            Some(function) if !function.returns => None,
            Some(_) => {
                Some(format!("the result of `{0}()` is not returned; write `return {0}()`", ident.sym))
            }
            None => Some(NOT_RETURNED.to_owned()),
        },
        Expr::Member(member) if is_console(&member.obj) => None,
        _ => Some(NOT_RETURNED.to_owned()),
    }
}

fn awaited_call(call: &CallExpr, functions: &[Declared<'_>]) -> Option<String> {
    let Callee::Expr(callee) = &call.callee else { return Some(NOT_RETURNED.to_owned()) };
    match bare(callee) {
        Expr::Ident(ident) => match functions.iter().find(|function| function.name.sym == ident.sym) {
            Some(function) if !function.returns => None,
            Some(_) => {
                Some(format!("the result of `{0}()` is not returned; write `return await {0}()`", ident.sym))
            }
            None => Some(NOT_RETURNED.to_owned()),
        },
        Expr::Arrow(arrow) if arrow.body.is_block_stmt() && !returns_value(&arrow.body) => None,
        Expr::Fn(function) if !returns_value(&function.function.body) => None,
        _ => Some(NOT_RETURNED.to_owned()),
    }
}

fn is_console(expression: &Expr) -> bool {
    matches!(bare(expression), Expr::Ident(ident) if &*ident.sym == "console")
}

const NOT_RETURNED: &str = "the last expression is not returned; write `return …`";
const ASSIGNED: &str = "the last assignment is not returned; end the program with `return …`";
const TEXT: &str = "the program ends in a text that is not returned; write `return …`";
const IMMEDIATE: &str = "the function called at the end is neither awaited nor returned, so the program may end before \
                         it; write `return await (async () => { … })()`";
