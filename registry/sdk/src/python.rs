//! Types of one tool in Python. What surrounds them is in `section`.
//!
//! An object with fields is a `TypedDict` named after the tool and the way to it, declared before it is used; what
//! recurs relies on annotations that are read late. Where Python has no type, a wider one and a comment are written.

mod merge;
pub(crate) mod section;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names::{Wanted, camel_case};
use crate::schema::{Kind, NodeId, Object, Rest, ToolTypes, Types};
use crate::signature::ToolSignature;
use crate::text;

pub(crate) use words::is_method;
use words::{docstring, is_field, literal};

/// How many lists may stand in one another: parsers of Python allow 200 brackets, and some are around these.
const LISTS_MAX: usize = 180;
/// How much is written for one tool; what comes after is `Any`.
const TOOL_BYTES_MAX: usize = 8 << 20;
/// How much of the way to a type is kept for its name, characters; names are cut to less.
const CONTEXT_CHARS_MAX: usize = 240;

/// The declarations of one tool, names of classes still to be given.
#[derive(Debug)]
pub(crate) struct Declarations {
    pub(crate) wanted: Wanted,
    /// Classes and aliases, each ended by an empty line.
    pub(crate) classes: String,
    /// The tool's member of the protocol, or a comment in its place.
    pub(crate) member: String,
    pub(crate) is_method: bool,
    /// Whether something refers to what is declared later.
    pub(crate) is_recursive: bool,
    /// What of `typing` is used.
    pub(crate) symbols: BTreeSet<&'static str>,
}

pub(crate) fn declarations(tool: &ToolSignature) -> Declarations {
    let ToolTypes { types, parameters, output } = ToolTypes::of(tool);
    let mut writer = Writer::new(&types);
    let tool_name = camel_case(tool.name());
    for def in &types.declared {
        let context = format!("{tool_name}{}", camel_case(&types.def(*def).label));
        writer.names[def.index()] = writer.wanted.ask(&context);
    }
    for def in &types.declared {
        let context = format!("{tool_name}{}", camel_case(&types.def(*def).label));
        writer.definition(def.index(), types.def(*def).root, &context);
    }
    let arguments = match parameters {
        Some(parameters) => writer.node(parameters, &format!("{tool_name}Args"), 0),
        None => writer.uses("Any", "dict[str, Any]"),
    };
    let output = match output {
        Some(output) => writer.node(output, &format!("{tool_name}Output"), 0),
        None => writer.uses("Any", "Any"),
    };
    let is_method = is_method(tool.name());
    let member = member(tool, is_method, &arguments, &output);
    let Writer { wanted, classes, is_recursive, symbols, .. } = writer;
    Declarations { wanted, classes, member, is_method, is_recursive, symbols }
}

fn member(tool: &ToolSignature, is_method: bool, arguments: &str, output: &str) -> String {
    let name = tool.name();
    let description = text::one_line(tool.description());
    if !is_method {
        let call = format!("    # tools[{}](args: {arguments}) -> {output}\n", text::quoted(name));
        return if description.is_empty() { call } else { format!("{call}    #   {description}\n") };
    }
    let head = format!("    async def {name}(self, args: {arguments}) -> {output}:");
    if description.is_empty() {
        format!("{head} ...\n")
    } else {
        format!("{head}\n        \"\"\"{}\"\"\"\n", docstring(&description))
    }
}

struct Writer<'a, 't> {
    types: &'t Types<'a>,
    wanted: Wanted,
    /// What stands for each definition, and whether it is declared by now.
    names: Vec<String>,
    declared: Vec<bool>,
    classes: String,
    is_recursive: bool,
    symbols: BTreeSet<&'static str>,
    /// Why something in the annotation that is being written is unknown.
    reasons: Vec<String>,
    /// How many fields may still be merged.
    merges_left: usize,
}

impl<'a, 't> Writer<'a, 't> {
    fn new(types: &'t Types<'a>) -> Self {
        let count = types.def_count();
        Self {
            types,
            wanted: Wanted::default(),
            names: vec![String::new(); count],
            declared: vec![false; count],
            classes: String::new(),
            is_recursive: false,
            symbols: BTreeSet::new(),
            reasons: Vec::new(),
            merges_left: merge::FIELDS_MAX,
        }
    }

    /// A definition: a class where it is an object with fields, else an alias.
    fn definition(&mut self, index: usize, root: NodeId, context: &str) {
        let name = self.names[index].clone();
        match self.as_class(root) {
            Some(object) => self.class(&name, &object, context),
            None => {
                let of = self.node(root, context, 0);
                let reasons = self.taken_reasons();
                self.comments(root, &reasons, "");
                self.classes.push_str(&format!("type {name} = {of}\n\n\n"));
            }
        }
        self.declared[index] = true;
    }

    /// The object that a node is, if a class can say it.
    fn as_class(&mut self, id: NodeId) -> Option<Object<'a>> {
        let mut objects = match &self.types.node(id).kind {
            Kind::Object(object) => vec![object.clone()],
            Kind::All(_) => self.merged(id)?,
            _ => return None,
        };
        objects.pop().filter(|object| objects.is_empty() && is_class(object))
    }

    /// Recursive: the graph's depth is bounded.
    fn node(&mut self, id: NodeId, context: &str, depth: usize) -> String {
        if self.classes.len() > TOOL_BYTES_MAX {
            return self.uses("Any", "Any");
        }
        let node = self.types.node(id);
        match &node.kind {
            Kind::Unknown => {
                self.reasons.extend(node.reason.clone());
                self.uses("Any", "Any")
            }
            Kind::Json => self.uses("Any", "Any"),
            Kind::Never => self.uses("Never", "Never"),
            Kind::String => "str".to_owned(),
            Kind::Number => "float".to_owned(),
            Kind::Integer => "int".to_owned(),
            Kind::Boolean => "bool".to_owned(),
            Kind::Null => "None".to_owned(),
            Kind::Literals(values) => self.literals(values),
            Kind::Union(parts) => self.union(parts, context, depth),
            Kind::All(parts) => match self.merged(id) {
                Some(objects) => self.objects(&objects, context, depth),
                None => self.node(parts[0], context, depth),
            },
            Kind::Array(_) | Kind::Tuple(_) if depth >= LISTS_MAX => self.uses("Any", "Any"),
            Kind::Array(None) => self.uses("Any", "list[Any]"),
            Kind::Array(Some(item)) => format!("list[{}]", self.node(*item, context, depth + 1)),
            Kind::Tuple(tuple) => {
                let parts: Vec<_> = tuple.items.iter().chain(&tuple.rest).copied().collect();
                match parts.as_slice() {
                    [] => self.uses("Never", "list[Never]"),
                    _ => format!("list[{}]", self.union(&parts, context, depth + 1)),
                }
            }
            Kind::Object(object) => self.object(object, context, depth),
            Kind::Ref(def) => {
                self.is_recursive |= !self.declared[def.index()];
                self.names[def.index()].clone()
            }
        }
    }

    fn union(&mut self, parts: &[NodeId], context: &str, depth: usize) -> String {
        let mut written = String::new();
        for (index, part) in parts.iter().enumerate() {
            let part = self.node(*part, &extended(context, &(index + 1).to_string()), depth);
            if index > 0 {
                written.push_str(" | ");
            }
            written.push_str(&part);
        }
        written
    }

    fn objects(&mut self, objects: &[Object<'a>], context: &str, depth: usize) -> String {
        match objects {
            [object] => self.object(object, context, depth),
            _ => {
                let each = objects.iter().enumerate();
                let names = each.map(|(index, object)| {
                    self.object(object, &extended(context, &(index + 1).to_string()), depth)
                });
                names.collect::<Vec<_>>().join(" | ")
            }
        }
    }

    fn object(&mut self, object: &Object<'a>, context: &str, depth: usize) -> String {
        if is_class(object) {
            let name = self.wanted.ask(context);
            self.class(&name, object, context);
            return name;
        }
        match &object.rest {
            _ if !object.fields.is_empty() || depth >= LISTS_MAX => self.uses("Any", "dict[str, Any]"),
            Rest::Of(value) => format!("dict[str, {}]", self.node(*value, context, depth + 1)),
            Rest::Named(names, value) => {
                let names: Vec<_> = names.iter().map(|name| text::quoted(name)).collect();
                let value = self.node(*value, context, depth + 1);
                self.uses("Literal", &format!("dict[Literal[{}], {value}]", names.join(", ")))
            }
            _ => self.uses("Any", "dict[str, Any]"),
        }
    }

    /// Writes a class; the classes of its fields come before it.
    fn class(&mut self, name: &str, object: &Object<'a>, context: &str) {
        let outer = std::mem::take(&mut self.reasons);
        let mut fields = Vec::with_capacity(object.fields.len());
        for field in &object.fields {
            let of = self.node(field.node, &extended(context, &camel_case(field.name)), 1);
            let of =
                if field.required { of } else { self.uses("NotRequired", &format!("NotRequired[{of}]")) };
            fields.push((field, of, self.taken_reasons()));
        }
        let rest = match &object.rest {
            Rest::Anything => "    # Additional keys are allowed.\n".to_owned(),
            Rest::Of(value) | Rest::Partly(value) => {
                let of = self.node(*value, &extended(context, "Value"), 1);
                format!("    # Additional keys are allowed: {of}\n")
            }
            Rest::Nothing | Rest::Named(..) => String::new(),
        };
        self.symbols.insert("TypedDict");
        self.classes.push_str(&format!("class {name}(TypedDict):\n"));
        if fields.is_empty() {
            self.classes.push_str("    pass\n");
        }
        for (field, of, reasons) in fields {
            self.comments(field.node, &reasons, "    ");
            self.classes.push_str(&format!("    {}: {of}\n", field.name));
        }
        self.classes.push_str(&rest);
        self.classes.push_str("\n\n");
        self.reasons = outer;
    }

    /// Text that uses a symbol of `typing`.
    fn uses(&mut self, symbol: &'static str, text: &str) -> String {
        self.symbols.insert(symbol);
        text.to_owned()
    }

    /// Values as `Literal`, and the types of those that no literal can be.
    fn literals(&mut self, values: &[&Value]) -> String {
        let (mut named, mut types) = (Vec::new(), Vec::new());
        for value in values {
            match literal(value) {
                Ok(literal) => named.push(literal),
                Err(name) if !types.contains(&name) => types.push(name),
                Err(_) => {}
            }
        }
        if types.iter().any(|name| name.contains("Any")) {
            self.symbols.insert("Any");
        }
        if named.is_empty() {
            return types.join(" | ");
        }
        let literal = self.uses("Literal", &format!("Literal[{}]", named.join(", ")));
        std::iter::once(literal.as_str()).chain(types).collect::<Vec<_>>().join(" | ")
    }

    fn taken_reasons(&mut self) -> Vec<String> {
        std::mem::take(&mut self.reasons)
    }

    /// What is said about a node, as a comment above it.
    fn comments(&mut self, id: NodeId, reasons: &[String], indent: &str) {
        let node = self.types.node(id);
        let hints: Vec<_> = node.hints.iter().chain(reasons).cloned().collect();
        let line = text::with_hints(node.description, &hints);
        if !line.is_empty() {
            self.classes.push_str(&format!("{indent}# {line}\n"));
        }
    }
}

/// The way to a type with one more step, not longer than a name can use.
fn extended(context: &str, step: &str) -> String {
    context.chars().chain(step.chars()).take(CONTEXT_CHARS_MAX).collect()
}

/// Whether an object is written as a class: it has fields, each with a name that a class can have, or nothing at all.
fn is_class(object: &Object<'_>) -> bool {
    if object.fields.is_empty() {
        return matches!(object.rest, Rest::Nothing);
    }
    object.fields.iter().all(|field| is_field(field.name))
}
