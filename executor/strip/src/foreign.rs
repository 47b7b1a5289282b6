//! What to say of a text that is no TypeScript: the parser's words, or what it is instead where that is plain to see.

use deno_ast::swc::ast::*;
use deno_ast::swc::common::Spanned;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};

use crate::parse::{self, Fault, offset};
use crate::refusal::Refusal;

/// The refusal of a text that the parser could not read.
pub(crate) fn explain(text: &str, fault: &Fault) -> Refusal {
    if is_json(text) {
        return Refusal::at(text, start(text), JSON);
    }
    if let Some(place) = jsx(text) {
        return Refusal::at(text, place, JSX);
    }
    if let Some(fence) = fence(text) {
        return Refusal::at(text, fence, MARKDOWN);
    }
    match foreign(text, fault.offset) {
        Some(what) => {
            let message =
                format!("the program must be TypeScript, and this looks like {what}: {}", fault.message);
            Refusal::at(text, fault.offset, message)
        }
        None => Refusal::at(text, fault.offset, fault.message.clone()),
    }
}

fn start(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Whether the whole text is one object with quoted keys.
fn is_json(text: &str) -> bool {
    let Some(expression) = parse::lone_expression(text) else { return false };
    let Expr::Object(object) = &*expression else { return false };
    !object.props.is_empty()
        && object.props.iter().all(|property| match property {
            PropOrSpread::Prop(property) => {
                matches!(&**property, Prop::KeyValue(KeyValueProp { key: PropName::Str(_), .. }))
            }
            PropOrSpread::Spread(_) => false,
        })
}

/// The first JSX in a text that can be read once JSX is allowed.
fn jsx(text: &str) -> Option<usize> {
    let tree = parse::tsx(text).ok()?;
    let mut finder = Finder { found: None };
    tree.visit_with(&mut finder);
    finder.found
}

struct Finder {
    found: Option<usize>,
}

impl Visit for Finder {
    fn visit_jsx_element(&mut self, element: &JSXElement) {
        self.found = self.found.or_else(|| Some(offset(element.span().lo)));
    }

    fn visit_jsx_fragment(&mut self, fragment: &JSXFragment) {
        self.found = self.found.or_else(|| Some(offset(fragment.span().lo)));
    }
}

/// Offset of a line that opens a Markdown block.
fn fence(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// What language the text is in, by its first line of code or the line that could not be read.
fn foreign(text: &str, fault: usize) -> Option<&'static str> {
    let before = text.get(..fault).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let faulty = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let mut lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '/', '*']));
    lines.next().and_then(language).or_else(|| language(faulty.trim()))
}

/// A text that reads as TypeScript and is something else all the same.
pub(crate) fn disguised(text: &str, tree: &Module) -> Option<Refusal> {
    shell_command(text, tree).or_else(|| markdown(text, tree))
}

/// A program that is one shell command: `pwd`, `ls -la`, `cd /tmp && ls`.
fn shell_command(text: &str, tree: &Module) -> Option<Refusal> {
    let [ModuleItem::Stmt(Stmt::Expr(statement))] = tree.body.as_slice() else { return None };
    let command = first_word(&statement.expr)?;
    let message = format!("the program must be TypeScript, and this looks like {SHELL}: `{}`", command.sym);
    COMMANDS.contains(&&*command.sym).then(|| Refusal::at(text, offset(command.span.lo), message))
}

/// The first name of an expression that is nothing but names and binary operators.
fn first_word(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Ident(name) => Some(name),
        Expr::Bin(binary) => first_word(&binary.right).and_then(|_| first_word(&binary.left)),
        _ => None,
    }
}

/// Three back-ticks read as an empty template that is the tag of another: no program means that.
fn markdown(text: &str, tree: &Module) -> Option<Refusal> {
    if !text.contains("```") {
        return None;
    }
    let mut fences = Fences { found: None };
    tree.visit_with(&mut fences);
    fences.found.map(|at| Refusal::at(text, at, MARKDOWN))
}

struct Fences {
    found: Option<usize>,
}

impl Visit for Fences {
    fn visit_tagged_tpl(&mut self, tagged: &TaggedTpl) {
        tagged.visit_children_with(self);
        if tagged.tag.is_tpl() {
            self.found = self.found.or(Some(offset(tagged.span.lo)));
        }
    }
}

const SHELL: &str = "a shell command";

/// Commands that are tried where a program is expected.
const COMMANDS: [&str; 24] = [
    "awk", "cat", "cd", "chmod", "cp", "curl", "date", "df", "du", "env", "find", "git", "grep", "ls",
    "mkdir", "mv", "npm", "ps", "pwd", "rm", "sed", "sudo", "top", "whoami",
];

fn language(line: &str) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let second = words.next().unwrap_or_default();
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_.,".contains(c));
    let python = match first {
        "import" => {
            plain(second)
                && words.next().is_none_or(|third| third == "as" || plain(third))
                && !line.ends_with(';')
        }
        "from" => plain(second) && words.next() == Some("import"),
        "def" | "class" | "elif" | "except" | "with" => line.ends_with(':'),
        "for" => line.ends_with(':') && line.contains(" in "),
        "if" | "while" | "else:" | "try:" => line.ends_with(':'),
        "print" => second.starts_with(['"', '\'']),
        _ => false,
    };
    if python {
        return Some("Python");
    }
    let shell = match first {
        "echo" => !second.is_empty() && !second.starts_with(['(', '=', '.']),
        "export" | "source" | "pip" | "npx" => second.contains('=') || plain(second) && first != "export",
        _ if COMMANDS.contains(&first) => second.starts_with(['-', '/', '.', '~', '$']) || plain(second),
        _ => false,
    };
    shell.then_some(SHELL)
}

const JSON: &str = "the program is a JSON object, not TypeScript; send the code itself";
const JSX: &str = "JSX is not supported; build the text or the object with plain code";
const MARKDOWN: &str = "the program must be TypeScript, and this is Markdown; send the code alone, or as one fenced block \
                        with nothing around it";
