//! Words of Python: which names it takes where, and how it writes strings and values.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use crate::text;

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];
/// Names that annotations use: where a class has a member of that name, they would mean the member.
const IN_ANNOTATIONS: [&str; 12] = [
    "Any",
    "Literal",
    "Never",
    "NotRequired",
    "Protocol",
    "TypedDict",
    "bool",
    "dict",
    "float",
    "int",
    "list",
    "str",
];

/// Whether a tool can be called as `tools.name`.
pub(crate) fn is_method(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
        && !IN_ANNOTATIONS.contains(&name)
}

/// A line that may stand in a docstring.
pub(super) fn docstring(line: &str) -> String {
    line.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Whether a class can have a field of that name, and still mean that name.
pub(super) fn is_field(name: &str) -> bool {
    let mut chars = name.chars();
    let is_identifier = chars.next().is_some_and(|c| c == '_' || unicode_ident::is_xid_start(c))
        && chars.all(unicode_ident::is_xid_continue);
    let is_mangled = name.starts_with("__") && !name.ends_with("__");
    is_identifier
        && !is_mangled
        && !KEYWORDS.contains(&name)
        && name != "__debug__"
        && name.nfkc().eq(name.chars())
}

/// A value as a literal of a type, or the type where no literal can be it.
pub(super) fn literal(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::Null => Ok("None".to_owned()),
        Value::Bool(value) => Ok(if *value { "True" } else { "False" }.to_owned()),
        Value::String(value) => Ok(text::quoted(value)),
        Value::Number(number) => match number.as_f64() {
            // All digits of a whole number, as Python writes it.
            Some(value) if number.is_f64() && value.fract() == 0.0 => Ok(format!("{:.0}", value + 0.0)),
            _ if number.is_f64() => Err("float"),
            _ => Ok(number.to_string()),
        },
        Value::Array(_) => Err("list[Any]"),
        Value::Object(_) => Err("dict[str, Any]"),
    }
}
