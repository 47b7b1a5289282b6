//! Types of one tool in TypeScript. What surrounds them is in `section`.
//!
//! Every property is written under its own name, quoted where it has to be; only definitions get names of ours.

pub(crate) mod section;
#[cfg(test)]
mod tests;

use crate::names::{Wanted, camel_case, has_slots};
use crate::schema::{Field, Kind, NodeId, Object, Rest, ToolTypes, Tuple, Types};
use crate::signature::ToolSignature;
use crate::text;

/// How much is written for one tool; what comes after is `unknown`.
const TOOL_BYTES_MAX: usize = 8 << 20;
/// Up to what size of JSON text an object or an array is written as a literal.
const LITERAL_BYTES_MAX: usize = 1_000;
/// What every object has already: beside an optional property of that name, every object literal would be refused.
const INHERITED: [&str; 7] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// The declarations of one tool, names of definitions still to be given.
#[derive(Debug)]
pub(crate) struct Declarations {
    pub(crate) wanted: Wanted,
    /// The definitions, each ended by a line break.
    pub(crate) aliases: String,
    /// The member of the map of arguments, with its documentation.
    pub(crate) arguments: String,
    /// The member of the map of outputs.
    pub(crate) output: String,
}

pub(crate) fn declarations(tool: &ToolSignature) -> Declarations {
    let ToolTypes { types, parameters, output } = ToolTypes::of(tool);
    let mut wanted = Wanted::default();
    let mut names = vec![String::new(); types.def_count()];
    for def in &types.declared {
        names[def.index()] =
            wanted.ask(&format!("{}{}", camel_case(tool.name()), camel_case(&types.def(*def).label)));
    }
    let mut writer = Writer { types: &types, names: &names, out: String::new() };
    for def in &types.declared {
        let root = types.def(*def).root;
        writer.doc(root, 0);
        writer.out.push_str(&format!("type {} = ", names[def.index()]));
        writer.node(root, 0);
        writer.out.push_str(";\n");
    }
    let aliases = std::mem::take(&mut writer.out);
    let key = property(tool.name());
    writer.comment(&text::one_line(tool.description()), 1);
    writer.out.push_str(&format!("  {key}: "));
    match parameters {
        Some(parameters) => writer.node(parameters, 1),
        None => writer.out.push_str("Record<string, JsonValue>"),
    }
    writer.out.push_str(";\n");
    let arguments = std::mem::take(&mut writer.out);
    writer.out.push_str(&format!("  {key}: "));
    match output {
        Some(output) => writer.node(output, 1),
        None => writer.out.push_str("JsonValue"),
    }
    writer.out.push_str(";\n");
    let output = writer.out;
    Declarations { wanted, aliases, arguments, output }
}

/// A property's name: bare if it is plain, else quoted.
pub(crate) fn property(name: &str) -> String {
    if is_bare(name) { name.to_owned() } else { text::quoted(name) }
}

pub(crate) fn is_bare(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    name.chars().all(is_part) && name.starts_with(|c: char| !c.is_ascii_digit())
}

struct Writer<'a, 't> {
    types: &'t Types<'a>,
    /// What stands for each declared definition.
    names: &'t [String],
    out: String,
}

impl<'a> Writer<'a, '_> {
    /// Recursive: the graph's depth is bounded.
    fn node(&mut self, id: NodeId, indent: usize) {
        if self.out.len() > TOOL_BYTES_MAX {
            self.out.push_str("unknown");
            return;
        }
        let node = self.types.node(id);
        match &node.kind {
            Kind::Unknown => self.unknown(node.reason.as_deref()),
            Kind::Json => self.out.push_str("JsonValue"),
            Kind::Never => self.out.push_str("never"),
            Kind::String => self.out.push_str("string"),
            Kind::Number | Kind::Integer => self.out.push_str("number"),
            Kind::Boolean => self.out.push_str("boolean"),
            Kind::Null => self.out.push_str("null"),
            Kind::Literals(values) => {
                self.joined(values, " | ", |writer, value| writer.out.push_str(&literal(value)));
            }
            Kind::Union(parts) => self.joined(parts, " | ", |writer, part| writer.node(*part, indent)),
            Kind::All(parts) => self.all(parts, indent),
            Kind::Array(None) => self.out.push_str("JsonValue[]"),
            Kind::Array(Some(item)) => self.array(*item, indent),
            Kind::Tuple(tuple) => self.tuple(tuple, indent),
            Kind::Object(object) => self.object(object, indent, true),
            Kind::Ref(def) => self.out.push_str(&self.names[def.index()]),
        }
    }

    fn unknown(&mut self, reason: Option<&str>) {
        self.out.push_str("unknown");
        if let Some(reason) = reason {
            self.out.push_str(&format!(" /* {} */", commented(&text::one_line(reason))));
        }
    }

    fn joined<T>(&mut self, parts: &[T], between: &str, mut write: impl FnMut(&mut Self, &T)) {
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.out.push_str(between);
            }
            write(self, part);
        }
    }

    /// Parts that hold at once; that there may be anything else is said once, at the end.
    fn all(&mut self, parts: &[NodeId], indent: usize) {
        let mut is_open = false;
        self.joined(parts, " & ", |writer, part| match &writer.types.node(*part).kind {
            Kind::Object(object) if !object.fields.is_empty() && matches!(object.rest, Rest::Anything) => {
                is_open = true;
                writer.object(object, indent, false);
            }
            Kind::Union(_) | Kind::Literals(_) => {
                writer.out.push('(');
                writer.node(*part, indent);
                writer.out.push(')');
            }
            _ => writer.node(*part, indent),
        });
        if is_open {
            self.out.push_str(" & Record<string, JsonValue>");
        }
    }

    fn array(&mut self, item: NodeId, indent: usize) {
        self.element(item, indent, "[]");
    }

    fn tuple(&mut self, tuple: &Tuple, indent: usize) {
        self.out.push('[');
        for (index, item) in tuple.items.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.element(*item, indent, if index < tuple.required { "" } else { "?" });
        }
        if let Some(rest) = tuple.rest {
            self.out.push_str(if tuple.items.is_empty() { "..." } else { ", ..." });
            self.element(rest, indent, "[]");
        }
        self.out.push(']');
    }

    /// A type with something behind it that binds tighter than `|` and `&`.
    fn element(&mut self, item: NodeId, indent: usize, suffix: &str) {
        let start = self.out.len();
        self.node(item, indent);
        if !suffix.is_empty() && self.out[start..].contains(['|', '&']) {
            self.out.insert(start, '(');
            self.out.push(')');
        }
        self.out.push_str(suffix);
    }

    fn object(&mut self, object: &Object<'a>, indent: usize, is_whole: bool) {
        if object.fields.is_empty() {
            return self.map(&object.rest, indent);
        }
        self.out.push_str("{\n");
        for field in &object.fields {
            self.field(field, indent + 1);
        }
        self.pad(indent);
        self.out.push('}');
        match &object.rest {
            Rest::Anything if is_whole => self.out.push_str(" & Record<string, JsonValue>"),
            Rest::Of(node) | Rest::Partly(node) => {
                // The fields need not fit what the other values are, so an index signature of these alone is too narrow.
                self.out.push_str(" & ");
                self.record(*node, indent, " | JsonValue");
            }
            _ => {}
        }
    }

    fn map(&mut self, rest: &Rest<'a>, indent: usize) {
        match rest {
            Rest::Nothing => self.out.push_str("Record<string, never>"),
            Rest::Anything => self.out.push_str("Record<string, JsonValue>"),
            Rest::Of(node) => self.record(*node, indent, ""),
            Rest::Partly(node) => self.record(*node, indent, " | JsonValue"),
            Rest::Named(names, node) => {
                self.out.push_str("{ [key in ");
                self.joined(names, " | ", |writer, name| writer.out.push_str(&text::quoted(name)));
                self.out.push_str("]?: ");
                self.node(*node, indent);
                self.out.push_str(" }");
            }
        }
    }

    fn record(&mut self, value: NodeId, indent: usize, or: &str) {
        let start = self.out.len();
        self.node(value, indent);
        self.out.push_str(or);
        // A definition may not go through `Record` to itself, but through an index signature.
        let (open, close) = if has_slots(&self.out[start..]) {
            ("{ [key: string]: ", " }")
        } else {
            ("Record<string, ", ">")
        };
        self.out.insert_str(start, open);
        self.out.push_str(close);
    }

    fn field(&mut self, field: &Field<'a>, indent: usize) {
        self.doc(field.node, indent);
        self.pad(indent);
        self.out.push_str(&property(field.name));
        self.out.push_str(if field.required { ": " } else { "?: " });
        self.node(field.node, indent);
        if !field.required && INHERITED.contains(&field.name) {
            self.out.push_str(&format!(" | Object[\"{}\"]", field.name));
        }
        self.out.push_str(";\n");
    }

    fn doc(&mut self, id: NodeId, indent: usize) {
        let node = self.types.node(id);
        self.comment(&text::with_hints(node.description, &node.hints), indent);
    }

    fn comment(&mut self, line: &str, indent: usize) {
        if !line.is_empty() {
            self.pad(indent);
            self.out.push_str(&format!("/** {} */\n", commented(line)));
        }
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n("  ", indent));
    }
}

/// One line that may stand in a block comment.
fn commented(line: &str) -> String {
    line.replace("*/", "*\\/")
}

fn literal(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(value) => text::quoted(value),
        Value::Array(_) => {
            text::compact(value, LITERAL_BYTES_MAX).unwrap_or_else(|| "JsonValue[]".to_owned())
        }
        Value::Object(_) => {
            text::compact(value, LITERAL_BYTES_MAX).unwrap_or_else(|| "Record<string, JsonValue>".to_owned())
        }
        _ => text::compact(value, LITERAL_BYTES_MAX).unwrap_or_else(|| "JsonValue".to_owned()),
    }
}
