//! Random programs whose meaning is known beforehand: each is written out twice, as TypeScript with types and no more
//! parentheses than TypeScript's grammar asks for, and as JavaScript with parentheses around everything. Stripping
//! the one has to give the other, or a refusal. The parser's reading of TypeScript has no say in it.

use deno_ast::swc::ast::{Expr, Module};
use deno_ast::swc::common::EqIgnoreSpan;
use deno_ast::swc::common::util::take::Take;
use deno_ast::swc::ecma_visit::{VisitMut, VisitMutWith};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::tests::{stripped_or_refused, unmoved};
use crate::{StripResult, oracle, parse};

/// A type, and whether line breaks go into it.
#[derive(Clone, Debug)]
struct Type {
    text: &'static str,
    broken: bool,
}

impl Type {
    fn written(&self) -> String {
        if self.broken { self.text.replace(' ', "\n  ") } else { self.text.to_owned() }
    }
}

#[derive(Clone, Debug)]
enum Node {
    Name(&'static str),
    Number(u8),
    Text,
    Parens(Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    As(Box<Node>, Type),
    Satisfies(Box<Node>, Type),
    Assertion(Type, Box<Node>),
    NonNull(Box<Node>),
    Unary(&'static str, Box<Node>),
    Member(Box<Node>, bool),
    Index(Box<Node>, Box<Node>),
    Call(Box<Node>, Option<Type>, Vec<Node>),
    New(Option<Type>, Vec<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    Assign(Target, Box<Node>),
    Arrow(Head, Box<Node>),
    Object(Vec<Node>),
    Array(Vec<Node>),
    Template(Box<Node>),
}

#[derive(Clone, Debug)]
enum Target {
    Name,
    NonNull,
    Cast(Type),
}

/// What stands before an arrow.
#[derive(Clone, Debug)]
struct Head {
    is_async: bool,
    generic: bool,
    break_after_generic: bool,
    parameters: Vec<(Option<Type>, bool)>,
    returns: Option<Type>,
}

#[derive(Clone, Debug)]
enum Statement {
    Expression(Node),
    Let(Option<Type>, Node),
    Uninitialised(Type),
    Return(Node),
    Throw(Node),
    If(Node, Box<Statement>),
    Declaration(&'static str),
    Class(Vec<(&'static str, &'static str, Option<Type>, Option<Node>)>),
    Function(Option<Type>, Node),
}

/// How tightly a node binds where TypeScript reads it.
fn precedence(node: &Node) -> u8 {
    match node {
        Node::Assign(..) | Node::Arrow(..) => 2,
        Node::Conditional(..) => 3,
        Node::Binary(operator, ..) => binary_precedence(operator),
        Node::As(..) | Node::Satisfies(..) => 10,
        Node::Unary(..) | Node::Assertion(..) => 15,
        Node::NonNull(..) | Node::Member(..) | Node::Index(..) | Node::Call(..) | Node::New(..) => 18,
        _ => 20,
    }
}

fn binary_precedence(operator: &str) -> u8 {
    match operator {
        "||" | "??" => 4,
        "&&" => 5,
        "|" => 6,
        "^" => 7,
        "&" => 8,
        "===" | "!=" => 9,
        "<=" | "in" | "instanceof" => 10,
        ">>" | "<<" => 11,
        "+" | "-" => 12,
        "*" | "/" | "%" => 13,
        "**" => 14,
        other => unreachable!("no precedence for {other}"),
    }
}

/// Whether the text of a node ends in a type, which would take in what follows it.
fn ends_in_type(node: &Node) -> bool {
    match node {
        Node::As(..) | Node::Satisfies(..) => true,
        Node::Binary(operator, _, right) => {
            precedence(right) > binary_precedence(operator) && ends_in_type(right)
        }
        Node::Unary(_, operand) | Node::Assertion(_, operand) => {
            precedence(operand) >= 15 && ends_in_type(operand)
        }
        Node::Conditional(_, _, last) | Node::Assign(_, last) => ends_in_type(last),
        Node::Arrow(_, body) => !typescript(body, 2).starts_with('{') && ends_in_type(body),
        Node::New(..) => false,
        _ => false,
    }
}

fn typescript(node: &Node, least: u8) -> String {
    // `a + b as T / c` is `((a + b) as T) / c` to TypeScript, where no outer operator binds as tightly as `as`.
    if let Node::Binary(operator, left, right) = node
        && matches!(**left, Node::As(..) | Node::Satisfies(..))
        && binary_precedence(operator) > 11
        && least < 10
    {
        let (_, right) = operands(operator, left, right);
        return format!("{} {operator} {right}", bare_typescript(left));
    }
    let text = bare_typescript(node);
    if precedence(node) < least { format!("({text})") } else { text }
}

fn operands(operator: &str, left: &Node, right: &Node) -> (String, String) {
    let own = binary_precedence(operator);
    let mut left_text = match operator {
        "**" => typescript(left, 16),
        "??" if !matches!(left, Node::Binary("??", ..)) => typescript(left, 6),
        _ => typescript(left, own),
    };
    if matches!(operator, "|" | "&" | "<<" | "<=") && ends_in_type(left) && precedence(left) >= own {
        left_text = format!("({left_text})");
    }
    let right_text = match operator {
        "**" => typescript(right, 14),
        "??" => typescript(right, 6),
        _ => typescript(right, own + 1),
    };
    // `a || b ?? c` may not be written, whichever way it is meant.
    let left_text = if operator == "||" && matches!(left, Node::Binary("??", ..)) {
        format!("({left_text})")
    } else {
        left_text
    };
    (left_text, right_text)
}

fn arguments(type_arguments: Option<&Type>, list: &[Node], write: fn(&Node, u8) -> String) -> String {
    let types = type_arguments.map(|each| format!("<{}>", each.written())).unwrap_or_default();
    format!("{types}({})", list.iter().map(|each| write(each, 2)).collect::<Vec<_>>().join(", "))
}

fn bare_typescript(node: &Node) -> String {
    match node {
        Node::Name(name) => (*name).to_owned(),
        Node::Number(number) => number.to_string(),
        Node::Text => "'é𝒳'".to_owned(),
        Node::Parens(inner) => format!("({})", typescript(inner, 2)),
        Node::Binary(operator, left, right) => {
            let (left, right) = operands(operator, left, right);
            format!("{left} {operator} {right}")
        }
        Node::As(inner, each) => format!("{} as {}", typescript(inner, 10), each.written()),
        Node::Satisfies(inner, each) => format!("{} satisfies {}", typescript(inner, 10), each.written()),
        Node::Assertion(each, inner) => format!("<{}>{}", each.written(), typescript(inner, 15)),
        Node::NonNull(inner) => format!("{}!", typescript(inner, 18)),
        Node::Unary(operator, inner) => format!("{operator} {}", typescript(inner, 15)),
        Node::Member(object, optional) => {
            format!("{}{}p", numberless(object, typescript(object, 18)), if *optional { "?." } else { "." })
        }
        Node::Index(object, key) => format!("{}[{}]", typescript(object, 18), typescript(key, 2)),
        Node::Call(callee, types, list) => {
            format!("{}{}", typescript(callee, 18), arguments(types.as_ref(), list, typescript))
        }
        Node::New(types, list) => format!("new K{}", arguments(types.as_ref(), list, typescript)),
        Node::Conditional(test, yes, no) => {
            let test_text = typescript(test, 4);
            let test_text = if ends_in_type(test) { format!("({test_text})") } else { test_text };
            format!("{test_text} ? ({}) : {}", typescript(yes, 2), typescript(no, 2))
        }
        Node::Assign(target, value) => {
            let target = match target {
                Target::Name => "v".to_owned(),
                Target::NonNull => "v!".to_owned(),
                Target::Cast(each) => format!("(v as {})", each.written()),
            };
            format!("{target} = {}", typescript(value, 2))
        }
        Node::Arrow(head, body) => {
            format!("{} => {}", typescript_head(head), arrow_body(body, typescript(body, 2)))
        }
        Node::Object(list) => object(list, typescript),
        Node::Array(list) => {
            format!("[{}]", list.iter().map(|each| typescript(each, 2)).collect::<Vec<_>>().join(", "))
        }
        Node::Template(inner) => format!("`a${{{}}}b`", typescript(inner, 2)),
    }
}

/// `1.p` is no member of 1.
fn numberless(object: &Node, text: String) -> String {
    if matches!(object, Node::Number(_)) { format!("({text})") } else { text }
}

fn arrow_body(body: &Node, text: String) -> String {
    if text.starts_with('{') && !matches!(body, Node::Parens(_)) { format!("({text})") } else { text }
}

fn object(list: &[Node], write: fn(&Node, u8) -> String) -> String {
    let members: Vec<_> =
        list.iter().enumerate().map(|(index, each)| format!("k{index}: {}", write(each, 2))).collect();
    format!("{{ {} }}", members.join(", "))
}

fn typescript_head(head: &Head) -> String {
    let mut text = String::new();
    if head.is_async {
        text.push_str("async ");
    }
    if head.generic {
        text.push_str("<T,>");
        if head.break_after_generic {
            text.push('\n');
        }
    }
    let parameters: Vec<_> = head
        .parameters
        .iter()
        .enumerate()
        .map(|(index, (each, optional))| {
            let mark = if *optional { "?" } else { "" };
            format!("q{index}{mark}{}", annotation(each.as_ref()))
        })
        .collect();
    format!("{text}({}){}", parameters.join(", "), annotation(head.returns.as_ref()))
}

fn annotation(each: Option<&Type>) -> String {
    each.map(|each| format!(": {}", each.written())).unwrap_or_default()
}

/// With parentheses around everything that has parts, save where they would end an optional chain.
fn javascript(node: &Node, least: u8) -> String {
    let text = bare_javascript(node);
    let whole = precedence(bare(node)) >= 18;
    if whole || least == 0 { text } else { format!("({text})") }
}

fn bare(node: &Node) -> &Node {
    match node {
        Node::As(inner, _) | Node::Satisfies(inner, _) | Node::Assertion(_, inner) | Node::NonNull(inner) => {
            bare(inner)
        }
        other => other,
    }
}

fn bare_javascript(node: &Node) -> String {
    match node {
        Node::Name(_) | Node::Number(_) | Node::Text => bare_typescript(node),
        Node::Parens(inner) => format!("({})", javascript(inner, 0)),
        // What is cast is in parentheses where TypeScript has to put them: the chain ends there.
        Node::As(inner, _) | Node::Satisfies(inner, _) | Node::Assertion(_, inner) => bare_javascript(inner),
        Node::NonNull(inner) if precedence(inner) < 18 => format!("({})", javascript(inner, 0)),
        Node::NonNull(inner) => bare_javascript(inner),
        Node::Binary(operator, left, right) => {
            format!("{} {operator} {}", javascript(left, 1), javascript(right, 1))
        }
        Node::Unary(operator, inner) => format!("{operator} {}", javascript(inner, 1)),
        Node::Member(object, optional) => {
            format!("{}{}p", numberless(object, chained(object)), if *optional { "?." } else { "." })
        }
        Node::Index(object, key) => format!("{}[{}]", chained(object), javascript(key, 1)),
        Node::Call(callee, _, list) => format!("{}{}", chained(callee), arguments(None, list, javascript)),
        Node::New(_, list) => format!("new K{}", arguments(None, list, javascript)),
        Node::Conditional(test, yes, no) => {
            format!("{} ? {} : {}", javascript(test, 1), javascript(yes, 1), javascript(no, 1))
        }
        Node::Assign(_, value) => format!("v = {}", javascript(value, 1)),
        Node::Arrow(head, body) => {
            let parameters: Vec<_> = (0..head.parameters.len()).map(|index| format!("q{index}")).collect();
            let word = if head.is_async { "async " } else { "" };
            format!("{word}({}) => ({})", parameters.join(", "), javascript(body, 0))
        }
        Node::Object(list) => object(list, javascript),
        Node::Array(list) => {
            format!("[{}]", list.iter().map(|each| javascript(each, 1)).collect::<Vec<_>>().join(", "))
        }
        Node::Template(inner) => format!("`a${{{}}}b`", javascript(inner, 0)),
    }
}

/// What stands before `.`: parentheses only where TypeScript's text has them.
fn chained(node: &Node) -> String {
    if precedence(node) < 18 { format!("({})", javascript(node, 0)) } else { bare_javascript(node) }
}

/// An expression where a statement may start, and not go on with the one before.
fn at_start(text: String) -> String {
    let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if text.starts_with(['{', '-', '<', '`']) || matches!(word, "function" | "class" | "let") {
        format!("({text})")
    } else {
        text
    }
}

/// The statement in TypeScript and in JavaScript; `end` ends what does not end in a type.
fn written(statement: &Statement, index: usize) -> (String, String) {
    let end = |node: &Node| if ends_in_type(node) { "\n" } else { ";\n" };
    match statement {
        Statement::Expression(node) => {
            (format!("{}{}", at_start(typescript(node, 0)), end(node)), format!("({});", javascript(node, 0)))
        }
        Statement::Let(each, node) => (
            format!("let l{index}{} = {}{}", annotation(each.as_ref()), typescript(node, 2), end(node)),
            format!("let l{index} = ({});", javascript(node, 0)),
        ),
        Statement::Uninitialised(each) => {
            (format!("let l{index}: {}\n", each.written()), format!("let l{index};"))
        }
        Statement::Return(node) => (
            format!("return {}{}", typescript(node, 0), end(node)),
            format!("return ({});", javascript(node, 0)),
        ),
        Statement::Throw(node) => (
            format!("throw {}{}", typescript(node, 0), end(node)),
            format!("throw ({});", javascript(node, 0)),
        ),
        Statement::If(test, then) => {
            let (types, plain) = written(then, index);
            let block = matches!(
                **then,
                Statement::Let(..)
                    | Statement::Uninitialised(_)
                    | Statement::Class(_)
                    | Statement::Function(..)
            );
            let (types, plain) =
                if block { (format!("{{ {types} }}\n"), format!("{{ {plain} }}")) } else { (types, plain) };
            (format!("if ({}) {types}", typescript(test, 0)), format!("if ({}) {plain}", javascript(test, 0)))
        }
        Statement::Declaration(text) => (format!("{text}\n"), ";".to_owned()),
        Statement::Class(members) => class(members, index),
        Statement::Function(returns, node) => (
            format!(
                "function f{index}<T>(this: any, a?: T){} {{ return {} }}\n",
                annotation(returns.as_ref()),
                typescript(node, 0)
            ),
            format!("function f{index}(a) {{ return ({}); }}", javascript(node, 0)),
        ),
    }
}

fn class(
    members: &[(&'static str, &'static str, Option<Type>, Option<Node>)],
    index: usize,
) -> (String, String) {
    let (mut types, mut plain) =
        (format!("class C{index}<T> implements I {{\n"), format!("class C{index} {{\n"));
    for (modifier, key, each, value) in members {
        let written_value =
            value.as_ref().map(|node| format!(" = {}", typescript(node, 2))).unwrap_or_default();
        types.push_str(&format!("{modifier}{key}{}{written_value}", annotation(each.as_ref())));
        let typed_end = match value {
            Some(node) => ends_in_type(node),
            None => each.is_some(),
        };
        types.push_str(if typed_end { "\n" } else { ";\n" });
        let plain_value =
            value.as_ref().map(|node| format!(" = ({})", javascript(node, 0))).unwrap_or_default();
        if !modifier.contains("declare") {
            let kept = if modifier.contains("static") { "static " } else { "" };
            plain.push_str(&format!("{kept}{key}{plain_value};\n"));
        }
    }
    (types + "}\n", plain + "}")
}

fn types() -> impl Strategy<Value = Type> {
    let texts = prop::sample::select(vec![
        "number",
        "string[]",
        "Map< string , 𝒳 >",
        "{ a : 1 }",
        "( () => void )",
        "readonly [ A , B ]",
        "keyof A",
        "typeof v",
        "A . B",
        "| A | 'é'",
        "`x${ string }`",
        "unique symbol",
        "A & B",
    ]);
    (texts, any::<bool>()).prop_map(|(text, broken)| Type { text, broken })
}

fn heads() -> impl Strategy<Value = Head> {
    let parameters = vec((prop::option::of(types()), any::<bool>()), 0..3);
    (any::<bool>(), any::<bool>(), any::<bool>(), parameters, prop::option::of(types())).prop_map(
        |(is_async, generic, break_after_generic, parameters, returns)| {
            let mut optional = false;
            let parameters = parameters
                .into_iter()
                .map(|(each, mark)| {
                    optional |= mark && each.is_some();
                    (each, optional)
                })
                .collect();
            Head { is_async, generic, break_after_generic, parameters, returns }
        },
    )
}

fn nodes() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["v", "π", "type", "as", "async"]).prop_map(Node::Name),
        any::<u8>().prop_map(Node::Number),
        Just(Node::Text),
    ];
    let operators = prop::sample::select(vec![
        "||",
        "??",
        "&&",
        "|",
        "^",
        "&",
        "===",
        "!=",
        "<=",
        "in",
        "instanceof",
        ">>",
        "<<",
        "+",
        "-",
        "*",
        "/",
        "%",
        "**",
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let boxed = inner.clone().prop_map(Box::new).boxed();
        let list = vec(inner, 0..3).boxed();
        let target = prop_oneof![Just(Target::Name), Just(Target::NonNull), types().prop_map(Target::Cast)];
        prop_oneof![
            1 => boxed.clone().prop_map(Node::Parens),
            3 => (operators.clone(), boxed.clone(), boxed.clone()).prop_map(|(o, l, r)| Node::Binary(o, l, r)),
            3 => (boxed.clone(), types()).prop_map(|(n, t)| Node::As(n, t)),
            2 => (boxed.clone(), types()).prop_map(|(n, t)| Node::Satisfies(n, t)),
            1 => (types(), boxed.clone()).prop_map(|(t, n)| Node::Assertion(t, n)),
            2 => boxed.clone().prop_map(Node::NonNull),
            1 => (prop::sample::select(vec!["!", "-", "typeof", "await"]), boxed.clone()).prop_map(|(o, n)| Node::Unary(o, n)),
            2 => (boxed.clone(), any::<bool>()).prop_map(|(n, o)| Node::Member(n, o)),
            1 => (boxed.clone(), boxed.clone()).prop_map(|(n, k)| Node::Index(n, k)),
            2 => (boxed.clone(), prop::option::of(types()), list.clone()).prop_map(|(n, t, l)| Node::Call(n, t, l)),
            1 => (prop::option::of(types()), list.clone()).prop_map(|(t, l)| Node::New(t, l)),
            1 => (boxed.clone(), boxed.clone(), boxed.clone()).prop_map(|(a, b, c)| Node::Conditional(a, b, c)),
            1 => (target, boxed.clone()).prop_map(|(t, n)| Node::Assign(t, n)),
            2 => (heads(), boxed.clone()).prop_map(|(h, n)| Node::Arrow(h, n)),
            1 => list.clone().prop_map(Node::Object),
            1 => list.prop_map(Node::Array),
            1 => boxed.prop_map(Node::Template),
        ]
    })
}

fn statements() -> impl Strategy<Value = Statement> {
    let members = (
        prop::sample::select(vec![
            "",
            "private ",
            "readonly ",
            "static readonly ",
            "public static ",
            "declare ",
        ]),
        prop::sample::select(vec!["x", "[v]", "get", "static", "async", "'q'"]),
        prop::option::of(types()),
        prop::option::of(nodes()),
    );
    let members = vec(members, 0..4).prop_map(|list| {
        let valued =
            |modifier: &str, value: Option<Node>| if modifier.contains("declare") { None } else { value };
        list.into_iter()
            .map(|(modifier, key, each, value)| (modifier, key, each, valued(modifier, value)))
            .collect()
    });
    let leaf = prop_oneof![
        4 => nodes().prop_map(Statement::Expression),
        3 => (prop::option::of(types()), nodes()).prop_map(|(t, n)| Statement::Let(t, n)),
        1 => types().prop_map(Statement::Uninitialised),
        1 => nodes().prop_map(Statement::Return),
        1 => nodes().prop_map(Statement::Throw),
        1 => prop::sample::select(vec![
            "type A<T> = T extends [infer U] ? U : never", "interface I {\n  a: number\n}", "declare const d: string",
            "declare function g(a: number): void", "type B = { [K in keyof A]?: A[K] }",
        ])
        .prop_map(Statement::Declaration),
        1 => members.prop_map(Statement::Class),
        1 => (prop::option::of(types()), nodes()).prop_map(|(t, n)| Statement::Function(t, n)),
    ];
    leaf.prop_recursive(2, 4, 1, |inner| (nodes(), inner).prop_map(|(n, s)| Statement::If(n, Box::new(s))))
}

struct NoParens;

impl VisitMut for NoParens {
    fn visit_mut_expr(&mut self, expression: &mut Expr) {
        while let Expr::Paren(inner) = expression {
            *expression = *inner.expr.take();
        }
        expression.visit_mut_children_with(self);
    }

    fn visit_mut_simple_assign_target(&mut self, target: &mut deno_ast::swc::ast::SimpleAssignTarget) {
        use deno_ast::swc::ast::SimpleAssignTarget as Target;
        while let Target::Paren(inner) = target {
            match Target::try_from(inner.expr.take()) {
                Ok(bare) => *target = bare,
                Err(_) => break,
            }
        }
        target.visit_mut_children_with(self);
    }
}

fn tree(text: &str) -> Option<Module> {
    let mut tree = parse::javascript(text).ok()?;
    oracle::normalise(&mut tree);
    tree.visit_mut_with(&mut NoParens);
    Some(tree)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    /// The one property: what comes out means what was meant, or nothing comes out.
    #[test]
    fn stripping_keeps_the_meaning_or_refuses(program in vec(statements(), 1..5)) {
        let (mut types, mut plain) = (String::from(";"), String::new());
        for (index, statement) in program.iter().enumerate() {
            let (typed, untyped) = written(statement, index);
            types.push_str(&typed);
            plain.push_str(&untyped);
            plain.push('\n');
        }
        let Some(meant) = tree(&plain) else { return Err(TestCaseError::reject("not JavaScript")) };
        if let StripResult::Stripped { source, .. } = stripped_or_refused(&types) {
            prop_assert!(unmoved(&types, &source), "moved:\n{types}\n{source}");
            let found = tree(&source);
            prop_assert!(
                found.is_some_and(|found| found.body.eq_ignore_span(&meant.body)),
                "typescript:\n{types}\nstripped:\n{source}\nmeant:\n{plain}"
            );
        }
    }
}
