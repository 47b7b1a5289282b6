//! The rules for namespaces: which names a program's globals may have. Pure; every fault is found, not the first only.

use std::collections::HashSet;

use codemode_wire::message::NamespaceTable;

/// Namespaces of one run, at most.
pub const NAMESPACES_MAX: usize = 64;
/// Functions of one run in all namespaces, at most.
pub const FUNCTIONS_MAX: usize = 65_536;
/// Bytes of a function's name, at most.
pub const FUNCTION_NAME_BYTES_MAX: usize = 1024;
/// Bytes of a global's name, at most. The contract names no number; identifiers of real programs stay far below.
pub const GLOBAL_NAME_BYTES_MAX: usize = 256;
/// Characters of a name that a fault shows.
const SHOWN_CHARS: usize = 64;

/// Names that the environment of some backend already uses.
const RESERVED_GLOBALS: &[&str] = &["console", "__dsh_main__", "__builtins__", "__name__", "__debug__"];

/// Members that error objects of some backend language already have.
const RESERVED_MEMBERS: &[&str] = &["name", "message", "stack", "args", "with_traceback", "add_note"];

/// Reserved in strict ECMAScript or in Python, soft keywords included: a name must work in every backend language.
const RESERVED_WORDS: &[&str] = &[
    "False",
    "None",
    "True",
    "_",
    "and",
    "arguments",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "def",
    "default",
    "del",
    "delete",
    "do",
    "elif",
    "else",
    "enum",
    "eval",
    "except",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "global",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "is",
    "lambda",
    "let",
    "match",
    "new",
    "nonlocal",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "public",
    "raise",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// One fault of the namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceFault {
    /// The name is no identifier in every backend language.
    #[error("`{0}` is not a usable identifier")]
    NotIdentifier(String),
    /// The environment uses the name.
    #[error("`{0}` is a reserved binding global")]
    ReservedGlobal(String),
    /// Two namespaces of one name.
    #[error("duplicate binding global `{0}`")]
    DuplicateGlobal(String),
    /// An error class has the name of a namespace or of another error class.
    #[error("duplicate injected global `{0}`")]
    DuplicateInjected(String),
    /// The member property clashes with what errors have.
    #[error("member property `{0}` is not usable")]
    Member(String),
    /// A function occurs twice in its namespace.
    #[error("duplicate function `{function}` in `{global}`")]
    DuplicateFunction {
        /// The namespace.
        global: String,
        /// The function.
        function: String,
    },
    /// A function's name is too long.
    #[error("a function name in `{global}` has {bytes} bytes; at most {FUNCTION_NAME_BYTES_MAX} are allowed")]
    LongFunction {
        /// The namespace.
        global: String,
        /// Length of the name.
        bytes: usize,
    },
    /// Too many namespaces.
    #[error("{0} namespaces; at most {NAMESPACES_MAX} are allowed")]
    TooMany(usize),
    /// Too many functions.
    #[error("{0} functions; at most {FUNCTIONS_MAX} are allowed")]
    TooManyFunctions(usize),
    /// The names do not fit one frame.
    #[error("the names of the functions have {bytes} bytes in all; at most {max} are allowed")]
    TooManyBytes {
        /// Their length in all.
        bytes: usize,
        /// The limit.
        max: usize,
    },
}

/// Every fault of the namespaces; empty if they can be used. `names_bytes_max` bounds all names together.
#[must_use]
pub fn faults(namespaces: &[NamespaceTable], names_bytes_max: usize) -> Vec<NamespaceFault> {
    let mut faults = Vec::new();
    if namespaces.len() > NAMESPACES_MAX {
        return vec![NamespaceFault::TooMany(namespaces.len())];
    }
    let functions: usize = namespaces.iter().map(|namespace| namespace.functions.len()).sum();
    if functions > FUNCTIONS_MAX {
        return vec![NamespaceFault::TooManyFunctions(functions)];
    }
    let bytes = namespaces.iter().flat_map(|namespace| &namespace.functions).map(String::len).sum();
    if bytes > names_bytes_max {
        return vec![NamespaceFault::TooManyBytes { bytes, max: names_bytes_max }];
    }
    let mut globals = HashSet::new();
    for namespace in namespaces {
        global_faults(&namespace.global, &mut faults);
        if !globals.insert(namespace.global.as_str()) {
            faults.push(NamespaceFault::DuplicateGlobal(shown(&namespace.global)));
        }
        function_faults(namespace, &mut faults);
    }
    let mut injected = globals;
    for (name, member) in namespaces.iter().filter_map(|namespace| namespace.error_class.as_ref()) {
        global_faults(name, &mut faults);
        if !injected.insert(name) {
            faults.push(NamespaceFault::DuplicateInjected(shown(name)));
        }
        if !is_usable_member(member) {
            faults.push(NamespaceFault::Member(shown(member)));
        }
    }
    faults
}

fn global_faults(name: &str, faults: &mut Vec<NamespaceFault>) {
    if RESERVED_GLOBALS.contains(&name) {
        faults.push(NamespaceFault::ReservedGlobal(shown(name)));
    } else if !is_identifier(name) || RESERVED_WORDS.contains(&name) {
        faults.push(NamespaceFault::NotIdentifier(shown(name)));
    }
}

fn function_faults(namespace: &NamespaceTable, faults: &mut Vec<NamespaceFault>) {
    let mut seen = HashSet::with_capacity(namespace.functions.len());
    for function in &namespace.functions {
        if function.len() > FUNCTION_NAME_BYTES_MAX {
            let global = shown(&namespace.global);
            faults.push(NamespaceFault::LongFunction { global, bytes: function.len() });
        } else if !seen.insert(function) {
            let (global, function) = (shown(&namespace.global), shown(function));
            faults.push(NamespaceFault::DuplicateFunction { global, function });
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    starts
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= GLOBAL_NAME_BYTES_MAX
}

fn is_usable_member(member: &str) -> bool {
    !member.is_empty()
        && member.len() <= GLOBAL_NAME_BYTES_MAX
        && !RESERVED_MEMBERS.contains(&member)
        && !is_dunder(member)
}

/// `__x__` with at least one character between.
fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

/// A foreign name as a message may show it: bounded, control characters escaped.
fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if name.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(global: &str) -> NamespaceTable {
        NamespaceTable { global: global.to_owned(), functions: Vec::new(), error_class: None }
    }

    fn with_class(global: &str, name: &str, member: &str) -> NamespaceTable {
        let error_class = Some((name.to_owned(), member.to_owned()));
        NamespaceTable { error_class, ..namespace(global) }
    }

    #[track_caller]
    fn check(namespaces: &[NamespaceTable], expected: &[&str]) {
        let found: Vec<String> = faults(namespaces, 1 << 20).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn globals_are_identifiers_of_every_backend_language() {
        for name in ["tools", "helpers", "_x", "T1", "ToolCallError", "Object"] {
            check(&[namespace(name)], &[]);
        }
        for name in ["not valid!", "await", "$tools", "a$b", "lambda", "", "1a", "é", "match", "type", "_"] {
            check(&[namespace(name)], &[&format!("`{name}` is not a usable identifier")]);
        }
        for name in RESERVED_GLOBALS {
            check(&[namespace(name)], &[&format!("`{name}` is a reserved binding global")]);
        }
    }

    #[test]
    fn duplicates() {
        check(&[namespace("tools"), namespace("tools")], &["duplicate binding global `tools`"]);
        check(&[with_class("tools", "tools", "m")], &["duplicate injected global `tools`"]);
        check(&[with_class("a", "b", "m"), namespace("b")], &["duplicate injected global `b`"]);
        check(&[with_class("a", "E", "m"), with_class("b", "E", "m")], &["duplicate injected global `E`"]);
        check(&[namespace("ToolCallError"), with_class("tools", "E", "m")], &[]);
    }

    #[test]
    fn error_classes() {
        check(&[with_class("tools", "not valid!", "m")], &["`not valid!` is not a usable identifier"]);
        check(&[with_class("tools", "await", "m")], &["`await` is not a usable identifier"]);
        check(&[with_class("tools", "console", "m")], &["`console` is a reserved binding global"]);
        for member in
            ["", "name", "message", "stack", "args", "with_traceback", "add_note", "__dict__", "__x__"]
        {
            check(&[with_class("t", "E", member)], &[&format!("member property `{member}` is not usable")]);
        }
        for member in ["code", "toolName", "_private", "__mid", "__", "____"] {
            check(&[with_class("t", "E", member)], &[]);
        }
    }

    #[test]
    fn functions_may_have_any_name_once() {
        let functions = ["__proto__", "constructor", "my-tool", "", "💥", "a\0b"].map(str::to_owned).to_vec();
        check(&[NamespaceTable { functions, ..namespace("tools") }], &[]);
        let functions = vec!["a".to_owned(), "a".to_owned(), "x".repeat(1025)];
        check(
            &[NamespaceTable { functions, ..namespace("tools") }],
            &[
                "duplicate function `a` in `tools`",
                "a function name in `tools` has 1025 bytes; at most 1024 are allowed",
            ],
        );
    }

    #[test]
    fn counts_are_bounded() {
        let many: Vec<_> = (0..65).map(|i| namespace(&format!("n{i}"))).collect();
        check(&many[..64], &[]);
        check(&many, &["65 namespaces; at most 64 are allowed"]);
        let functions: Vec<String> = (0..=FUNCTIONS_MAX).map(|i| i.to_string()).collect();
        check(
            &[NamespaceTable { functions, ..namespace("t") }],
            &["65537 functions; at most 65536 are allowed"],
        );
        let functions: Vec<String> = (0..1100).map(|i| format!("{i:01000}")).collect();
        check(
            &[NamespaceTable { functions, ..namespace("t") }],
            &["the names of the functions have 1100000 bytes in all; at most 1048576 are allowed"],
        );
    }

    #[test]
    fn all_faults_at_once_and_foreign_text_is_escaped() {
        check(
            &[namespace("a\x1b[31m"), with_class("console", "lambda", "args")],
            &[
                "`a\\u{1b}[31m` is not a usable identifier",
                "`console` is a reserved binding global",
                "`lambda` is not a usable identifier",
                "member property `args` is not usable",
            ],
        );
        check(
            &[namespace(&"x".repeat(300))],
            &[&format!("`{}…` is not a usable identifier", "x".repeat(64))],
        );
    }
}
