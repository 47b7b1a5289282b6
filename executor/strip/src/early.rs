//! A rule of the language that the parser does not check and the engine would only report later: no name is declared
//! twice in one scope.

use std::collections::HashMap;

use deno_ast::swc::ast::*;
use deno_ast::swc::atoms::Atom;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};

use crate::parse::offset;
use crate::refusal::Refusal;
use crate::scan;

/// Checks a JavaScript tree; `source` is its text.
pub(crate) fn check(source: &str, tree: &Module) -> Result<(), Refusal> {
    let mut checker = Checker { source, scopes: vec![Scope::function()], refused: None };
    tree.body.visit_with(&mut checker);
    match checker.refused {
        Some((at, message)) => Err(Refusal::at(source, at, message)),
        None => Ok(()),
    }
}

/// Names of one scope.
struct Scope {
    /// Whether `var` stops here, and functions are declared like it.
    is_function: bool,
    lexical: HashMap<Atom, usize>,
    /// `var` names, and functions where they are declared like it.
    variables: HashMap<Atom, usize>,
    /// Names that no lexical declaration of this scope may take: parameters.
    parameters: HashMap<Atom, usize>,
}

impl Scope {
    fn new(is_function: bool) -> Self {
        Self { is_function, lexical: HashMap::new(), variables: HashMap::new(), parameters: HashMap::new() }
    }

    fn function() -> Self {
        Self::new(true)
    }

    fn block() -> Self {
        Self::new(false)
    }
}

struct Checker<'a> {
    source: &'a str,
    scopes: Vec<Scope>,
    refused: Option<(usize, String)>,
}

impl Checker<'_> {
    fn refuse(&mut self, at: usize, message: String) {
        if self.refused.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
            self.refused = Some((at, message));
        }
    }

    fn twice(&mut self, name: &Ident, first: usize) {
        let (line, _) = scan::place(self.source, first);
        let message = format!(
            "`{}` is already declared on line {line}; give one of the two another name, or assign to it without declaring it again",
            name.sym
        );
        self.refuse(offset(name.span.lo), message);
    }

    fn inside(&mut self, scope: Scope, visit: impl FnOnce(&mut Self)) {
        self.scopes.push(scope);
        visit(self);
        self.scopes.pop();
    }

    fn lexical(&mut self, name: &Ident) {
        let at = offset(name.span.lo);
        let Some(scope) = self.scopes.last_mut() else { return };
        let taken = scope
            .variables
            .get(&name.sym)
            .or_else(|| scope.parameters.get(&name.sym))
            .or_else(|| scope.lexical.get(&name.sym))
            .copied();
        match taken {
            Some(first) => self.twice(name, first),
            None => {
                scope.lexical.insert(name.sym.clone(), at);
            }
        }
    }

    fn variable(&mut self, name: &Ident) {
        let at = offset(name.span.lo);
        let mut taken = None;
        for scope in self.scopes.iter_mut().rev() {
            taken = taken.or_else(|| scope.lexical.get(&name.sym).copied());
            scope.variables.entry(name.sym.clone()).or_insert(at);
            if scope.is_function {
                break;
            }
        }
        if let Some(first) = taken {
            self.twice(name, first);
        }
    }

    fn function_name(&mut self, name: &Ident) {
        let at = offset(name.span.lo);
        let Some(scope) = self.scopes.last_mut() else { return };
        if !scope.is_function {
            return self.lexical(name);
        }
        match scope.lexical.get(&name.sym).copied() {
            Some(first) => self.twice(name, first),
            None => {
                scope.variables.entry(name.sym.clone()).or_insert(at);
            }
        }
    }

    fn names(pattern: &Pat) -> Vec<Ident> {
        let mut names = Names::default();
        pattern.visit_with(&mut names);
        names.found
    }

    fn declared(&mut self, declaration: &VarDecl) {
        for declarator in &declaration.decls {
            for name in Self::names(&declarator.name) {
                if declaration.kind == VarDeclKind::Var {
                    self.variable(&name);
                } else {
                    self.lexical(&name);
                }
            }
        }
    }

    fn parameters<'p>(&mut self, patterns: impl Iterator<Item = &'p Pat>) {
        for pattern in patterns {
            for name in Self::names(pattern) {
                let at = offset(name.span.lo);
                let Some(scope) = self.scopes.last_mut() else { return };
                if let Some(first) = scope.parameters.insert(name.sym.clone(), at) {
                    self.twice(&name, first);
                }
            }
        }
    }
}

impl Visit for Checker<'_> {
    fn visit_var_decl(&mut self, declaration: &VarDecl) {
        self.declared(declaration);
        declaration.visit_children_with(self);
    }

    fn visit_fn_decl(&mut self, declaration: &FnDecl) {
        self.function_name(&declaration.ident);
        declaration.function.visit_with(self);
    }

    fn visit_class_decl(&mut self, declaration: &ClassDecl) {
        self.lexical(&declaration.ident);
        declaration.class.visit_with(self);
    }

    fn visit_function(&mut self, function: &Function) {
        self.inside(Scope::function(), |checker| {
            checker.parameters(function.params.iter().map(|parameter| &parameter.pat));
            function.params.visit_with(checker);
            if let Some(body) = &function.body {
                body.stmts.visit_with(checker);
            }
        });
    }

    fn visit_constructor(&mut self, constructor: &Constructor) {
        self.inside(Scope::function(), |checker| {
            let patterns = constructor.params.iter().filter_map(|parameter| match parameter {
                ParamOrTsParamProp::Param(parameter) => Some(&parameter.pat),
                ParamOrTsParamProp::TsParamProp(_) => None,
            });
            checker.parameters(patterns);
            constructor.params.visit_with(checker);
            if let Some(body) = &constructor.body {
                body.stmts.visit_with(checker);
            }
        });
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        self.inside(Scope::function(), |checker| {
            checker.parameters(arrow.params.iter());
            arrow.params.visit_with(checker);
            match &*arrow.body {
                BlockStmtOrExpr::BlockStmt(block) => block.stmts.visit_with(checker),
                BlockStmtOrExpr::Expr(expression) => expression.visit_with(checker),
            }
        });
    }

    fn visit_static_block(&mut self, block: &StaticBlock) {
        self.inside(Scope::function(), |checker| block.body.stmts.visit_with(checker));
    }

    fn visit_block_stmt(&mut self, block: &BlockStmt) {
        self.inside(Scope::block(), |checker| block.stmts.visit_with(checker));
    }

    fn visit_switch_stmt(&mut self, switch: &SwitchStmt) {
        switch.discriminant.visit_with(self);
        self.inside(Scope::block(), |checker| switch.cases.visit_with(checker));
    }

    fn visit_for_stmt(&mut self, statement: &ForStmt) {
        self.inside(Scope::block(), |checker| statement.visit_children_with(checker));
    }

    fn visit_for_in_stmt(&mut self, statement: &ForInStmt) {
        self.inside(Scope::block(), |checker| statement.visit_children_with(checker));
    }

    fn visit_for_of_stmt(&mut self, statement: &ForOfStmt) {
        self.inside(Scope::block(), |checker| statement.visit_children_with(checker));
    }

    fn visit_catch_clause(&mut self, clause: &CatchClause) {
        // `var e` may stand in `catch (e)`; `let e` may not, nor a name twice in a pattern.
        self.inside(Scope::block(), |checker| {
            checker.parameters(clause.param.iter());
            clause.param.visit_with(checker);
            clause.body.stmts.visit_with(checker);
        });
    }
}

/// The names that a pattern binds.
#[derive(Default)]
struct Names {
    found: Vec<Ident>,
}

impl Visit for Names {
    fn visit_binding_ident(&mut self, binding: &BindingIdent) {
        self.found.push(binding.id.clone());
    }

    fn visit_expr(&mut self, _: &Expr) {}
}
