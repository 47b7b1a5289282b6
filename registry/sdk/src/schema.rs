//! What a tool's two schemas say, as a graph of types that both languages are written from.
//!
//! `lower` reads the schemas, iteratively and within bounds; `resolve` finds what a `$ref` means; `hints` says in words
//! what types cannot; `simplify` drops what says nothing and cuts cycles without structure. The graph's depth is
//! bounded ([`DEPTH_MAX`]), so that what walks it may recurse; only definitions refer back, by number.

mod hints;
mod lower;
mod resolve;
mod simplify;

use serde_json::Value;

use crate::signature::ToolSignature;

/// How many objects, arrays and alternatives may stand in one another, counted anew in each definition. What is deeper
/// is unknown. Alternatives directly in alternatives do not count, nor do links of a chain of references.
pub(crate) const DEPTH_MAX: u32 = 256;
/// How many nodes a tool's graph may have; a schema of a megabyte has fewer. What comes after is unknown.
pub(crate) const NODES_MAX: usize = 1 << 20;

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

/// A definition of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DefId(u32);

impl DefId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The types of one tool.
#[derive(Debug, Default)]
pub(crate) struct Types<'a> {
    nodes: Vec<Node<'a>>,
    defs: Vec<Def>,
    /// Unions in which one word for a type is enough: those that no `oneOf` wrote.
    loose: Vec<NodeId>,
    /// Definitions that have to be declared, each after those it refers to as far as cycles allow.
    pub(crate) declared: Vec<DefId>,
}

/// A type, with what is said about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node<'a> {
    pub(crate) kind: Kind<'a>,
    /// The schema's own description, as it is written.
    pub(crate) description: Option<&'a str>,
    /// What the type cannot say: bounds, format, default.
    pub(crate) hints: Vec<String>,
    /// Why it is unknown.
    pub(crate) reason: Option<String>,
}

/// A schema that others refer to.
#[derive(Debug)]
pub(crate) struct Def {
    /// The last part of the reference; a name is made of it.
    pub(crate) label: String,
    pub(crate) root: NodeId,
    /// Short enough to be written where it is referred to.
    inline: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Kind<'a> {
    /// What cannot be said.
    Unknown,
    /// Any JSON value, since the schema says no more.
    #[default]
    Json,
    /// No value at all.
    Never,
    String,
    Number,
    Integer,
    Boolean,
    Null,
    /// One of these values.
    Literals(Vec<&'a Value>),
    Union(Vec<NodeId>),
    /// All of these at once.
    All(Vec<NodeId>),
    Array(Option<NodeId>),
    Tuple(Tuple),
    Object(Object<'a>),
    Ref(DefId),
}

/// An array whose first items have types of their own.
#[derive(Clone, Debug)]
pub(crate) struct Tuple {
    pub(crate) items: Vec<NodeId>,
    /// How many items there are at least.
    pub(crate) required: usize,
    /// What follows; none if nothing may.
    pub(crate) rest: Option<NodeId>,
}

#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    pub(crate) fields: Vec<Field<'a>>,
    pub(crate) rest: Rest<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    pub(crate) node: NodeId,
}

/// What an object may have beside its fields.
#[derive(Clone, Debug)]
pub(crate) enum Rest<'a> {
    Nothing,
    Anything,
    /// Values of this type, under any name.
    Of(NodeId),
    /// Values of this type under names of some pattern, and anything under others.
    Partly(NodeId),
    /// Values of this type, under these names only.
    Named(Vec<&'a str>, NodeId),
}

/// A tool's types and where arguments and output begin; none where there is no schema.
pub(crate) struct ToolTypes<'a> {
    pub(crate) types: Types<'a>,
    pub(crate) parameters: Option<NodeId>,
    pub(crate) output: Option<NodeId>,
}

impl<'a> ToolTypes<'a> {
    /// Reads both schemas of a tool. Total: whatever they are, there is an answer.
    pub(crate) fn of(tool: &'a ToolSignature) -> Self {
        let mut types = Types::default();
        let parameters = tool.parameters().map(|schema| lower::lower(&mut types, schema, "Args"));
        let output = tool.output().map(|schema| lower::lower(&mut types, schema, "Output"));
        simplify::simplify(&mut types, &[parameters, output]);
        Self { types, parameters, output }
    }
}

impl<'a> Types<'a> {
    pub(crate) fn node(&self, id: NodeId) -> &Node<'a> {
        &self.nodes[id.0 as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node<'a> {
        &mut self.nodes[id.0 as usize]
    }

    pub(crate) fn def(&self, id: DefId) -> &Def {
        &self.defs[id.index()]
    }

    pub(crate) fn def_count(&self) -> usize {
        self.defs.len()
    }

    fn add(&mut self, node: Node<'a>) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("nodes are bounded"));
        self.nodes.push(node);
        id
    }

    fn add_kind(&mut self, kind: Kind<'a>) -> NodeId {
        self.add(Node { kind, ..Node::default() })
    }

    /// The node that a reference stands for in the end, and the node itself if it is none.
    pub(crate) fn target(&self, id: NodeId) -> &Node<'a> {
        match self.node(id).kind {
            Kind::Ref(def) => self.node(self.def(def).root),
            _ => self.node(id),
        }
    }

    /// The nodes that a node is made of; a reference is made of nothing.
    fn children(&self, id: NodeId) -> Vec<NodeId> {
        match &self.node(id).kind {
            Kind::Union(parts) | Kind::All(parts) => parts.clone(),
            Kind::Array(item) => item.iter().copied().collect(),
            Kind::Tuple(tuple) => tuple.items.iter().chain(&tuple.rest).copied().collect(),
            Kind::Object(object) => {
                let mut children: Vec<_> = object.fields.iter().map(|field| field.node).collect();
                if let Rest::Of(node) | Rest::Partly(node) | Rest::Named(_, node) = &object.rest {
                    children.push(*node);
                }
                children
            }
            _ => Vec::new(),
        }
    }
}
