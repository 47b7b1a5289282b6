//! The parser, set up for the one thing it is asked: the body of a strict async function. No positions but byte
//! offsets into the text leave this file.

use deno_ast::swc::ast::{EsVersion, Expr, ExprStmt, Module, ModuleItem, Stmt};
use deno_ast::swc::common::{BytePos, Span, Spanned};
use deno_ast::swc::parser::error::{Error, SyntaxError};
use deno_ast::swc::parser::{Context, EsSyntax, Lexer, PResult, Parser, StringInput, Syntax, TsSyntax};

use crate::{line_words, satisfies, scan};

/// What the parser could not read.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The parser's words.
    pub(crate) message: String,
    /// Byte offset in the text.
    pub(crate) offset: usize,
}

/// Byte offset of a position. Texts are parsed from position 1, 0 means no position.
pub(crate) const fn offset(position: BytePos) -> usize {
    (position.0 as usize).saturating_sub(1)
}

/// Byte range of a span.
pub(crate) const fn range(span: Span) -> std::ops::Range<usize> {
    offset(span.lo)..offset(span.hi)
}

/// Reads a function body in TypeScript.
pub(crate) fn typescript(text: &str) -> Result<Module, Fault> {
    line_words::read(text, |text| satisfies::read(text, |text| body(text, typescript_syntax(false))))
}

/// Reads a function body in TypeScript that may hold JSX.
pub(crate) fn tsx(text: &str) -> Result<Module, Fault> {
    body(text, typescript_syntax(true))
}

/// Reads a function body in JavaScript.
pub(crate) fn javascript(text: &str) -> Result<Module, Fault> {
    body(text, Syntax::Es(EsSyntax::default()))
}

/// Reads a text that is one expression in JavaScript, as a statement of its own.
pub(crate) fn javascript_expression(text: &str) -> Result<Module, Fault> {
    expression(text, Syntax::Es(EsSyntax::default()))
}

/// Reads a text that is one function expression, as a statement of its own: `async function () {}` stands alone only
/// as an expression.
pub(crate) fn lone_function(text: &str) -> Option<Module> {
    let module = expression(text, typescript_syntax(false)).ok()?;
    let Some(ModuleItem::Stmt(Stmt::Expr(statement))) = module.body.first() else { return None };
    matches!(&*statement.expr, Expr::Fn(_)).then_some(module)
}

/// The one expression that a text is, if it is one.
pub(crate) fn lone_expression(text: &str) -> Option<Box<Expr>> {
    match expression(text, typescript_syntax(false)).ok()?.body.pop() {
        Some(ModuleItem::Stmt(Stmt::Expr(statement))) => Some(statement.expr),
        _ => None,
    }
}

const fn typescript_syntax(tsx: bool) -> Syntax {
    Syntax::Typescript(TsSyntax {
        tsx,
        decorators: true,
        dts: false,
        no_early_errors: false,
        disallow_ambiguous_jsx_like: false,
    })
}

fn body(text: &str, syntax: Syntax) -> Result<Module, Fault> {
    with_parser(text, syntax, |parser| {
        let context =
            parser.ctx() | Context::InFunction | Context::InsideNonArrowFunctionScope | Context::InAsync;
        parser.set_ctx(context);
        parser.parse_module()
    })
}

fn expression(text: &str, syntax: Syntax) -> Result<Module, Fault> {
    let expression = with_parser(text, syntax, |parser| {
        let context =
            parser.ctx() | Context::InAsync | Context::Strict | Context::Module | Context::CanBeModule;
        parser.set_ctx(context | Context::IncludeInExpr);
        parser.parse_expr()
    })?;
    let span = expression.span();
    let mut end = scan::skip_trivia(text, offset(span.hi));
    while scan::byte(text, end) == b';' {
        end = scan::skip_trivia(text, end + 1);
    }
    if end < text.len() {
        return Err(Fault { message: "text after the expression".to_owned(), offset: end });
    }
    let statement = Stmt::Expr(ExprStmt { span, expr: expression });
    Ok(Module { span, body: vec![ModuleItem::Stmt(statement)], shebang: None })
}

fn with_parser<T>(
    text: &str,
    syntax: Syntax,
    read: impl FnOnce(&mut Parser<Lexer<'_>>) -> PResult<T>,
) -> Result<T, Fault> {
    let Ok(length) = u32::try_from(text.len()) else {
        return Err(Fault { message: "the program is too long".to_owned(), offset: 0 });
    };
    if length > u32::MAX / 2 {
        return Err(Fault { message: "the program is too long".to_owned(), offset: 0 });
    }
    let input = StringInput::new(text, BytePos(1), BytePos(length + 1));
    let mut parser = Parser::new_from(Lexer::new(syntax, EsVersion::latest(), input, None));
    let tree = read(&mut parser);
    let recovered = parser.take_errors();
    let first = recovered.into_iter().min_by_key(|error| error.span().lo);
    match (tree, first) {
        (Ok(tree), None) => Ok(tree),
        (Ok(_), Some(error)) => Err(fault(text, &error)),
        (Err(fatal), Some(error)) if error.span().lo <= fatal.span().lo => Err(fault(text, &error)),
        (Err(fatal), _) => Err(fault(text, &fatal)),
    }
}

fn fault(text: &str, error: &Error) -> Fault {
    Fault { message: words(error), offset: offset(error.span().lo).min(text.len()) }
}

/// The parser's words, or clearer ones.
fn words(error: &Error) -> String {
    match error.kind() {
        SyntaxError::WithInStrict | SyntaxError::TS2410 => {
            "`with` is not allowed in strict code; name the object: `const o = …; o.x`".to_owned()
        }
        SyntaxError::LegacyOctal | SyntaxError::TS1085 | SyntaxError::LegacyDecimal => {
            "numbers may not start with 0; write `0o17` for an octal one".to_owned()
        }
        SyntaxError::LegacyCommentInModule => {
            "`<!--` and `-->` start HTML-like comments in JavaScript; write `//`, or put spaces between the operators"
                .to_owned()
        }
        SyntaxError::TS2406 | SyntaxError::NotSimpleAssign => "this cannot be assigned to".to_owned(),
        SyntaxError::Unexpected { got, expected } if expected.len() > 60 => {
            format!("unexpected `{got}`, expected an expression or a type")
        }
        SyntaxError::WithLabel { inner, .. } => words(inner),
        kind => kind.msg().into_owned(),
    }
}
