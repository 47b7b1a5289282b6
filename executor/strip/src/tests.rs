//! The hazards, one by one: what may be erased and how, what has to be refused and with which words.

use super::*;

/// As [`strip`], but a panic is a panic.
pub(crate) fn stripped_or_refused(program: &str) -> StripResult {
    match nesting::on_deep_stack(|| stations(program)) {
        Ok(stripped) => stripped,
        Err(refusal) => {
            let (line, column) = refusal.place;
            StripResult::Refused { message: refusal.to_string(), line, column }
        }
    }
}

/// Whether every line of a program has its length in the text that came of it. Lines may be added.
pub(crate) fn unmoved(program: &str, source: &str) -> bool {
    let lengths = |text: &str| -> Vec<usize> {
        text.replace("\r\n", "\n")
            .split(scan::is_line_terminator)
            .map(|line| line.encode_utf16().count())
            .collect()
    };
    lengths(source).starts_with(&lengths(program))
}

#[track_caller]
fn stripped(program: &str) -> (Shape, String, Vec<String>) {
    match stripped_or_refused(program) {
        StripResult::Stripped { shape, source, hints } => {
            assert!(unmoved(program, &source), "moved:\n{program}\n{source}");
            (shape, source, hints)
        }
        StripResult::Refused { message, .. } => panic!("refused: {message}\n{program}"),
    }
}

/// Checks the JavaScript of a body. Spaces at line ends are left out of `expected`.
#[track_caller]
fn check(program: &str, expected: &str) {
    let (_, source, _) = stripped(program);
    let trimmed: Vec<_> = source.split('\n').map(str::trim_end).collect();
    assert_eq!(trimmed.join("\n"), expected);
}

#[track_caller]
fn check_shape(program: &str, shape: Shape, expected: &str) {
    let (found, source, _) = stripped(program);
    assert_eq!(found, shape);
    let trimmed: Vec<_> = source.split('\n').map(str::trim_end).collect();
    assert_eq!(trimmed.join("\n"), expected);
}

/// Checks where a program is refused, and that the message has all the words.
#[track_caller]
fn check_refused(program: &str, place: (u32, u32), words: &[&str]) {
    match stripped_or_refused(program) {
        StripResult::Refused { message, line, column } => {
            assert_eq!((line, column), place, "{message}");
            for word in words {
                assert!(message.contains(word), "no `{word}` in: {message}");
            }
            assert!(!message.contains('\n'), "{message}");
        }
        StripResult::Stripped { source, .. } => panic!("not refused:\n{program}\n{source}"),
    }
}

#[track_caller]
fn check_hint(program: &str, words: &str) {
    let (_, _, hints) = stripped(program);
    assert!(hints.iter().any(|hint| hint.contains(words)), "{hints:?}");
}

#[track_caller]
fn check_no_hint(program: &str) {
    let (_, _, hints) = stripped(program);
    assert_eq!(hints, Vec::<String>::new(), "{program}");
}

#[test]
fn types_become_blanks() {
    check("const x: number = 1 as number, y = x!;", "const x         = 1          , y = x ;");
    check(
        "function f<T>(a?: T, ...b: T[]): T { return a!; }",
        "function f   (a    , ...b     )    { return a ; }",
    );
    check("try { f(); } catch (e: unknown) {}", "try { f(); } catch (e         ) {}");
    check("let x!: number;", "let x         ;");
    check(
        "const m = new Map<string, A<B>>([[1, 2]] as const);",
        "const m = new Map              ([[1, 2]]         );",
    );
    check("f<T>`q`; g?.<U>(1); const h = k<V>;", "f   `q`; g?.   (1); const h = k   ;");
    check(
        "const { a, b }: { a: 1; b: 2 } = c satisfies D;",
        "const { a, b }                 = c            ;",
    );
    check("for (const k in o as object) ;", "for (const k in o          ) ;");
    check(
        "(x as any).y = (<any>z).w; x! = 1; x!++; [(a as any)] = b;",
        "(x       ).y = (     z).w; x  = 1; x ++; [(a       )] = b;",
    );
    check("a?.b!.c; (a?.b)!.c; a!?.[0]!();", "a?.b .c; (a?.b) .c; a ?.[0] ();");
    check("import('x'); import.meta;", "import('x'); import.meta;");
}

#[test]
fn columns_are_utf16_units() {
    check(
        "const 𝒳: Map<'𝒳', π> = '🚀' as '🚀', y: 1 = 1;",
        "const 𝒳               = '🚀'        , y    = 1;",
    );
    check("const \\u0061bc: 1 = 1;", "const \\u0061bc    = 1;");
    check("const f = (\\u0061?: 𝒳) => a;", "const f = (\\u0061     ) => a;");
}

#[test]
fn a_semicolon_ends_what_the_blank_would_join() {
    check("const t = 40 as number\n(() => 1)()", "const t = 40 ;\n(() => 1)()");
    check("const t = 40 satisfies number\n[1].x", "const t = 40 ;\n[1].x");
    check("x = y!\nfoo", "x = y;\nfoo");
    check("let x: number\n[1].map(f)", "let x;\n[1].map(f)");
    check("const b = 5\ninterface R { id: number }\n[1].map(f)", "const b = 5\n;\n[1].map(f)");
    check("a\ntype T = 1\n(b)", "a\n;\n(b)");
    check("a\ndeclare const t: number\n`b`", "a\n;\n`b`");
    check("function f(a: 1): void\nfunction f(a: any) {}\n(g)", ";\nfunction f(a     ) {}\n(g)");
    check("const f = (a: 1) => a as any\n(b)", "const f = (a   ) => a ;\n(b)");
    check("const k = Map<string>\nfoo", "const k = Map;\nfoo");
}

#[test]
fn an_erased_statement_leaves_an_empty_one() {
    check("if (a)\n  type T = 1\nb()", "if (a)\n  ;\nb()");
    check("if (a) interface I {}\nelse b()", "if (a) ;\nelse b()");
    check("l: declare let x: 1", "l: ;");
    check("do type T = 1\nwhile (a)", "do ;\nwhile (a)");
}

#[test]
fn class_members_keep_apart() {
    check("class A { l = 1\n private [k] = 3\n }", "class A { l = 1\n ;       [k] = 3\n }");
    check("class A { l = 1\n public *g() {} }", "class A { l = 1\n ;      *g() {} }");
    check("class A { get: number\n x() {} }", "class A { get;\n x() {} }");
    check("class A { x?: T\n [y] = 1 as 1\n [z]() {} }", "class A { x ;\n [y] = 1 ;\n [z]() {} }");
    check("class A { x!: T\n static y: 1\n z = 1 }", "class A { x ;\n static y;\n z = 1 }");
    check("class A { a = 1\n declare b: T\n [c] = 2 }", "class A { a = 1\n ;\n [c] = 2 }");
    check("class A { a = 1;\n [k: string]: T\n [c] = 2 }", "class A { a = 1;\n ;\n [c] = 2 }");
    check("class A { f(a: 1): 1\n f(a: any) { return a } }", "class A { ;\n f(a     ) { return a } }");
    check(
        "abstract class A<T> extends B<T> implements C<T>, D { abstract x(): T }",
        "         class A    extends B                       { ;               }",
    );
    check(
        "class A extends B { static readonly x = 1; override y = 2 }",
        "class A extends B { static          x = 1; ;        y = 2 }",
    );
    check(
        "class A extends B { constructor(x: 1) { super() } }",
        "class A extends B { constructor(x   ) { super() } }",
    );
    check(
        "class A { public constructor() {} private get x(): 1 { return 1 } maybe?() {} }",
        "class A { ;      constructor() {} ;       get x()    { return 1 } maybe () {} }",
    );
    check("const A = class implements B {}", "const A = class              {}");
}

#[test]
fn this_parameters_go() {
    check("function f(this: T) {}", "function f(       ) {}");
    check("function f(this: T, a: 1) {}", "function f(         a   ) {}");
    check("function f(this: T, /* c */) {}", "function f(         /* c */) {}");
    check(
        "const o = { m(this: T, a) {}, set x(this: T, v: 1) {} };",
        "const o = { m(         a) {}, set x(         v   ) {} };",
    );
}

#[test]
fn parentheses_move_to_where_lines_allow_them() {
    check("const w = async<T>\n(v: T) => v", "const w = async(\n v   ) => v");
    check("function* g() { yield <T>\n(x: T) => x }", "function* g() { yield (\n x   ) => x }");
    check("return <T>(\nx: T) => x", "return    (\nx   ) => x");
    check("const f = (a):\n  number => a", "const f = (a\n       ) => a");
    check("const f = (a // c\n): {\n  b: 1\n} => a", "const f = (a // c\n\n\n) => a");
    check("const f = (): T<\n 𝒳> => 1", "const f = (\n   ) => 1");
    check("const f = async (\n  a,\n): Promise<\n  void\n> => {}", "const f = async (\n  a,\n\n\n) => {}");
    check("const f = (a: 1, b?): 1 | π\n  | π => a", "const f = (a   , b\n    ) => a");
}

#[test]
fn grouping_is_kept_or_refused() {
    check_refused("const a = t + e as number / c;", (1, 17), &["`as`", "(a + b) as T"]);
    check_refused("const a = t + e satisfies number / c;", (1, 17), &["`satisfies`", "(a + b) satisfies T"]);
    check_refused("x = 2 ** 3 as number ** 2", (1, 12), &["`as`", "a ** b"]);
    check_refused("x = a ?? 0 as number || 25", (1, 5), &["??"]);
    check_refused("x = -a as number ** 2", (1, 8), &["as"]);
    check("x = a + b as number;", "x = a + b          ;");
    check("x = a * b satisfies number + c;", "x = a * b                  + c;");
    check("x = a + b satisfies number;", "x = a + b                 ;");
    check("x = (a + b as number) / c;", "x = (a + b          ) / c;");
    check_refused("x = y as const | 1", (1, 16), &["as const"]);
    check_refused("x = y as const & 1", (1, 16), &["as const"]);
    check("x = y as const || 1", "x = y          || 1");
    check_refused("x as any = 5", (1, 1), &["(x as T) ="]);
    check_refused("a<b>.c", (1, 2), &["parentheses"]);
    check_refused("async as number\n({ });", (1, 1), &["parentheses"]);
    check_refused("x = async as T\n(y)", (1, 5), &["parentheses"]);
}

#[test]
fn prefix_assertions_stay_on_their_line() {
    check("const a = <T>b;", "const a =    b;");
    check("a;\n<T>b.c()", "a;\n   b.c()");
    check_refused("function f() { return <T>\n [1] }", (1, 23), &["assertion", "(x as T)"]);
    check_refused("const f = () => <T>{ x: 0 };", (1, 17), &["assertion", "(x as T)"]);
    check_refused("a;\n<any>function () {}", (2, 1), &["assertion"]);
    check_refused("<any>{ a: 1 }", (1, 1), &["assertion"]);
    check_refused("throw <T>\nx", (1, 7), &["assertion"]);
}

#[test]
fn line_breaks_make_names_of_keywords() {
    check("declare\nclass A { v = 1 }", "declare\nclass A { v = 1 }");
    check("declare\nfunction f() { return 1 }", "declare\nfunction f() { return 1 }");
    check("abstract\nclass A {}", "abstract\nclass A {}");
    check("declare // c\nconst a = 1", "declare // c\nconst a = 1");
    check("`declare\nconst a`; declare\nlet b", "`declare\nconst a`; declare\nlet b");
    check("type\nA = 1", "type\nA = 1");
    check("namespace\nA\n{}", "namespace\nA\n{}");
    check("x.declare\ny; ({ declare\n, a })", "x.declare\ny; ({ declare\n, a })");
    check_refused("declare type\nA = 1", (1, 9), &["`type`"]);
    check_refused("interface\nA {}", (1, 1), &[]);
    check_refused("class A { private\nx = 1 }", (1, 11), &["`private`", "join"]);
    check_refused("class A { readonly static\n[k: string]: 1 }", (1, 20), &["`static`"]);
    check("class A { static static\n}", "class A { static static\n}");
    check("class A { static\nx = 1 }", "class A { static\nx = 1 }");
}

#[test]
fn names_that_look_like_keywords() {
    check(
        "let type = 1, declare = 2, as = 3; type = as as number;",
        "let type = 1, declare = 2, as = 3; type = as          ;",
    );
    check("x = a\n!b", "x = a\n!b");
    check(
        "class A { readonly: 1; declare = 2; abstract() {} static static: 1 }",
        "class A { readonly   ; declare = 2; abstract() {} static static;   }",
    );
}

#[test]
fn what_has_meaning_at_run_time_is_refused() {
    check_refused("const a = 1;\nconst enum E { A }", (2, 1), &["`enum`", "line 2", "as const"]);
    check_refused("declare enum E { A }", (1, 1), &["`enum`"]);
    check_refused("export enum E { A }", (1, 8), &["`enum`"]);
    check_refused("namespace A { export const x = 1 }", (1, 1), &["`namespace`", "const Util"]);
    check_refused("class A { constructor(private x: 1) {} }", (1, 23), &["parameter property", "this.x = x"]);
    check_refused("class A { @log x() {} }", (1, 11), &["decorator"]);
    check_refused("@log class A {}", (1, 1), &["decorator"]);
    check_refused("class A { accessor x = 1 }", (1, 11), &["`accessor`"]);
    check_refused("{ using a = b }", (1, 3), &["`using`", "finally"]);
    check_refused("for (await using a of b) {}", (1, 6), &["`using`"]);
    check_refused("import fs = require('fs');", (1, 1), &["`import`", "imports nothing"]);
    check_refused("import type { A } from 'a';", (1, 1), &["`import`"]);
    check_refused("import a from 'a';", (1, 1), &["`import`"]);
    check_refused("export const a = 1;", (1, 1), &["`export`", "return"]);
    check_refused("export { a };", (1, 1), &["`export`"]);
    check_refused("export = a;", (1, 1), &["`export`"]);
    check_refused("const c = (p: P) => <div>{p.x}</div>;", (1, 21), &["JSX"]);
}

#[test]
fn what_has_none_is_erased() {
    check("export type A = 1;\nexport interface B {}\nnamespace C { export type D = 1 }", ";\n;\n;");
    check("declare global { interface A {} }\ndeclare module 'x';", ";\n;");
    check("declare class A { x: 1 }\ndeclare function f(): void;", ";\n;");
}

#[test]
fn strict_mode_and_early_errors() {
    check_refused("with ({ a: 1 }) { return a; }", (1, 1), &["`with`"]);
    check_refused("return 010", (1, 8), &["0o17"]);
    check_refused("delete x", (1, 8), &["delete"]);
    check_refused("let a; eval = 1", (1, 8), &["assigned"]);
    check_refused("break", (1, 1), &["break"]);
    check_refused("const a = 1;\nconst b = 2;\nconst a = 3;", (3, 7), &["`a`", "line 1"]);
    check_refused("let a; var a", (1, 12), &["`a`"]);
    check_refused("var a; let a", (1, 12), &["`a`"]);
    check_refused("let a; { var a }", (1, 14), &["`a`"]);
    check_refused("class a {} function a() {}", (1, 21), &["`a`"]);
    check_refused("{ function f() {} function f() {} }", (1, 28), &["`f`"]);
    check_refused("function f(a) { let a }", (1, 21), &["`a`"]);
    check_refused("(a, a) => 1", (1, 5), &["`a`"]);
    check_refused("try {} catch (e) { let e }", (1, 24), &["`e`"]);
    check_refused("switch (a) { case 1: let b; case 2: let b }", (1, 41), &["`b`"]);
    check_refused("const { a, b: [a] } = c", (1, 16), &["`a`"]);
    check(
        "function f() {} function f() {} var g, g; try {} catch (e) { var e } let h; { let h }",
        "function f() {} function f() {} var g, g; try {} catch (e) { var e } let h; { let h }",
    );
    check("const A = 1; type A = 1; interface A {}", "const A = 1; ;           ;");
    check(
        "function f(a: 1): 1; function f(a: any) { return a }",
        ";                    function f(a     ) { return a }",
    );
    check(
        "for (let i = 0;;) { let i } const f = function g() { let g }; class C { static { var x } static { var x } }",
        "for (let i = 0;;) { let i } const f = function g() { let g }; class C { static { var x } static { var x } }",
    );
}

#[test]
fn html_like_comments_are_refused_where_they_are_code() {
    check_refused("let b = 1;\nconst r = 5 <!--b;", (2, 13), &["HTML"]);
    check_refused("let b = 1\n--> b", (2, 1), &["HTML"]);
    check("return '<!--' + `-->`; // <!-- x\n/* --> */", "return '<!--' + `-->`; // <!-- x\n/* --> */");
}

#[test]
fn syntax_errors_stand_where_they_are() {
    check_refused("const a = 1;\nconst b = [1, 2;\nreturn a;", (2, 16), &["','", "line 2, column 16"]);
    check_refused("const 𝒳 = '🚀'; const y: = 5", (1, 27), &["unexpected `=`"]);
    check_refused("\r\n\r\nreturn {", (3, 9), &[]);
    check_refused("a\u{2028}b\u{2029})", (3, 1), &[]);
    check_refused("} evil {", (1, 1), &[]);
    check_refused("return 1\n}); evil(() => {", (2, 1), &[]);
    check_refused("`abc", (1, 1), &["template"]);
}

#[test]
fn what_surrounds_the_program() {
    check("\u{feff}const x: 1 = 1", " const x    = 1");
    check("#!/usr/bin/env -S deno run\nconst x: 1 = 1", "\nconst x    = 1");
    check("```ts\nconst x: 1 = 1;\n```", "\nconst x    = 1;\n");
    check("\n  ~~~~ typescript\r\nreturn 1 as 1;\n~~~~\n", "\n\nreturn 1     ;\n\n");
    check("```\n#!/usr/bin/env node\nreturn `a`\n```", "\n\nreturn `a`\n");
    check("`` + `a\n`", "`` + `a\n`");
    check_refused("Here:\n```ts\nreturn 1;\n```", (2, 1), &["Markdown"]);
    check_refused("```ts\na\n```\n```ts\nb\n```", (1, 1), &["Markdown"]);
    check_refused("#!/bin/sh\nls", (1, 1), &["must be TypeScript", "`sh`"]);
    check_refused("#!/usr/bin/env python3\nx = 1", (1, 1), &["must be TypeScript"]);
    check("", "");
    check("   \n// nothing\n", "\n// nothing\n");
}

#[test]
fn other_languages_are_named() {
    check_refused("import json\nitems = 1\n", (2, 1), &["must be TypeScript", "Python"]);
    check_refused("import os", (1, 10), &["Python"]);
    check_refused("def f(x):\n    return x", (1, 5), &["Python"]);
    check_refused("ls -la", (1, 1), &["shell command"]);
    check_refused("cd /tmp && ls", (1, 1), &["shell command"]);
    check_refused("{\"code\": \"return 1;\", \"language\": \"typescript\"}", (1, 1), &["JSON"]);
    check("ls - l; rm", "ls - l; rm");
}

#[test]
fn lone_functions_are_functions() {
    check_shape("async () => { return 1 as 1 }", Shape::Function, "async () => { return 1 ;    }");
    check_shape("(async ({ tools }: any) => 1);", Shape::Function, "(async ({ tools }     ) => 1)");
    check_shape(
        "async function () { return 1; };\n// end",
        Shape::Function,
        "async function () { return 1; }\n// end",
    );
    check_shape("function main(a: 1) { return a } ", Shape::Body, "function main(a   ) { return a }");
    check_shape(
        "type A = 1;\ndeclare const tools: A;\n;(a: A) => a as A",
        Shape::Function,
        "\n\n (a   ) => a",
    );
    check_shape("export default async (a: 1) => a;", Shape::Function, "               async (a   ) => a");
    check_shape(
        "export default async function main(a: 1) {}\ninterface A {}",
        Shape::Function,
        "               async function main(a   ) {}\n",
    );
    check_shape("export default\nfunction () {}", Shape::Function, "\nfunction () {}");
    check_shape("return () => 1", Shape::Body, "return () => 1");
}

#[test]
fn default_exports_after_other_statements() {
    check_shape(
        "const x: 1 = 1;\nexport default async () => x;",
        Shape::Factory,
        "const x    = 1;\nreturn         async () => x;",
    );
    check_shape(
        "const f = () => 1\nexport default f as any\n",
        Shape::Factory,
        "const f = () => 1\nreturn         f ;\n",
    );
    check_shape(
        "export default async function main() { return y }\nconst y = 1;",
        Shape::Factory,
        "               async function main() { return y }\nconst y = 1;\nreturn main;",
    );
    check_refused("const x = 1;\nexport default x;", (2, 1), &["`export`", "return"]);
    check_refused("a();\nexport default () => 1;\nb();", (2, 1), &["`export`"]);
    check_refused("a();\nexport default\n() => 1;", (2, 1), &["`export`"]);
    check_refused("if (a) return 1;\nexport default () => 1;", (2, 1), &["`export`"]);
    check_refused("export default class A {}", (1, 1), &["`export`"]);
}

#[test]
fn hints_for_what_is_not_returned() {
    check_hint("async function main() { return 1 }", "`main` is defined and never called");
    check_hint("const run = async () => 1;", "`run` is defined and never called");
    check_hint(
        "function help() { return 1 }\nasync function main() { return main() + help() }",
        "return await main()",
    );
    check_hint("async function main() { return 1 }\nmain();", "neither awaited nor returned");
    check_hint("async function main() { return 1 }\nawait main();", "result of `main()` is not returned");
    check_hint("(async () => { return 1 })();", "neither awaited nor returned");
    check_hint("const a = await f();\na.map((x: X) => x.id)", "last expression is not returned");
    check_hint("let x;\nx = await f();", "assignment");
    check_hint("\"return 1\"", "text");
    check_no_hint("async function main() { await f() }\nawait main();");
    check_no_hint("return 1");
    check_no_hint("if (a) { return 1 }\nb");
    check_no_hint("for (const a of b) { f(a) }");
    check_no_hint("a();\nconsole.log(1);");
    check_no_hint("async () => 1");
    check_no_hint("");
}

#[test]
fn deep_nesting_is_refused_or_survived() {
    let deep = |open: &str, middle: &str, close: &str, levels: usize| {
        format!("x = {}{middle}{}", open.repeat(levels), close.repeat(levels))
    };
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{a:", "1", "}"),
        ("()=>{", "", "}"),
        ("`${", "1", "}`"),
        ("class{a=", "1", "}"),
        ("f<T>(", "1", ")"),
    ] {
        stripped(&deep(open, middle, close, 500));
        check_refused_deep(&deep(open, middle, close, 20_000));
    }
    for (open, middle, close) in [
        ("a=>", "1", ""),
        ("!", "1", ""),
        ("a?b:", "1", ""),
        ("a=", "1", ""),
        ("", "a", ".b"),
        ("", "1", "+1"),
        ("", "a", "!"),
        ("", "a", " as T"),
    ] {
        stripped(&deep(open, middle, close, 5_000));
    }
}

#[track_caller]
fn check_refused_deep(program: &str) {
    match stripped_or_refused(program) {
        StripResult::Refused { message, .. } => assert!(message.contains("nested too deeply"), "{message}"),
        StripResult::Stripped { .. } => panic!("not refused"),
    }
}

#[test]
fn warming_up_strips() {
    warm_up();
    assert!(matches!(strip("return 1"), StripResult::Stripped { shape: Shape::Body, .. }));
}

mod fuzz {
    use proptest::prelude::*;

    use super::{StripResult, strip, unmoved};

    /// Pieces whose mixtures come near to programs.
    const PIECES: [&str; 48] = [
        "const a",
        ": number",
        " = ",
        "1",
        " as ",
        "T",
        "<T>",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "=>",
        "async ",
        "function f",
        ";",
        "\n",
        "!",
        "?",
        "?.",
        ".b",
        "`",
        "${",
        "/",
        "/*",
        "*/",
        "//",
        "'",
        "class A ",
        "extends ",
        "private ",
        "declare ",
        "abstract ",
        "type X = ",
        "interface I ",
        "enum ",
        "namespace ",
        "import ",
        "export default ",
        "\u{2028}",
        "𝒳",
        "\\u{61}",
        "@",
        "#x",
        "satisfies ",
        "```ts\n",
        "return ",
    ];

    fn check(program: &str) -> Result<(), TestCaseError> {
        match strip(program) {
            StripResult::Stripped { source, .. } => prop_assert!(unmoved(program, &source), "{source:?}"),
            StripResult::Refused { message, line, column } => {
                // The parser asserts in debug builds what it does not rely on: such a panic is a refusal without a place.
                let placed = line > 0 && column > 0 || cfg!(debug_assertions) && message.contains("beyond");
                prop_assert!(placed && !message.contains('\n'), "{message:?} {line} {column}");
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_answered(program in any::<String>()) {
            check(&program)?;
        }

        #[test]
        fn any_mixture_is_answered(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)) {
            check(&pieces.concat())?;
        }
    }
}

#[test]
fn chains_that_take_the_parser_for_ever_are_refused() {
    for (program, words) in [
        (format!("{}return 1", "if(0);else ".repeat(80_000)), "`else`"),
        (format!("return {}1", "!".repeat(900_000)), "operators before one operand"),
        (format!("return {}1", "typeof ".repeat(100_000)), "operators before one operand"),
    ] {
        let StripResult::Refused { message, line, .. } = strip(&program) else {
            panic!("not refused: {words}")
        };
        assert!(message.starts_with("nested too deeply: ") && message.contains(words), "{message}");
        assert_eq!(line, 1);
    }
    let honest = format!("{}return 1", "if (0); else ".repeat(500));
    assert!(matches!(strip(&honest), StripResult::Stripped { .. }));
}
