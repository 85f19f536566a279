//! The tree that an expression is read into.

use std::ops::Range;
use std::sync::Arc;

use regex::Regex;

use crate::builtins::Builtin;
use crate::value::Value;

/// Where in the text a node stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        // The lexer refuses texts for which this could saturate.
        let narrow = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        Self { start: narrow(range.start), end: narrow(range.end) }
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start as usize..span.end as usize
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// How many nodes deep the tree is here: evaluation recurses that deep.
    pub(crate) depth: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Minus,
    Plus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Coalesce,
    Equal,
    NotEqual,
    In,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How a member hangs on what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// `a.b`: it is an error if `a` is nil.
    Plain,
    /// `a?.b`: if `a` is nil, so is the whole row.
    Optional,
}

/// What a predicate calls the element it is looking at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pointer {
    Item,
    Index,
    Accumulator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predicate {
    All,
    Any,
    None,
    One,
    Filter,
    Map,
    Find,
    FindIndex,
    FindLast,
    FindLastIndex,
    Count,
    Sum,
    GroupBy,
    SortBy,
    Reduce,
}

impl Predicate {
    /// What each is called.
    pub(crate) const NAMES: &[(&str, Self)] = &[
        ("all", Self::All),
        ("any", Self::Any),
        ("none", Self::None),
        ("one", Self::One),
        ("filter", Self::Filter),
        ("map", Self::Map),
        ("find", Self::Find),
        ("findIndex", Self::FindIndex),
        ("findLast", Self::FindLast),
        ("findLastIndex", Self::FindLastIndex),
        ("count", Self::Count),
        ("sum", Self::Sum),
        ("groupBy", Self::GroupBy),
        ("sortBy", Self::SortBy),
        ("reduce", Self::Reduce),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, predicate)| *predicate)
    }
}

#[derive(Debug)]
pub(crate) enum Kind {
    Constant(Value),
    /// A variable of the host, by its place among the names the program uses.
    Global(usize),
    /// A variable made by `let`, by its place among those in scope.
    Local(usize),
    /// `$env`: all variables of the host.
    Env,
    Pointer(Pointer),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<[Node; 2]>),
    /// `a < b <= c`: each neighbouring pair has to be in order.
    Comparison(Box<Node>, Vec<(Comparison, Node)>),
    /// With the pattern already made when it is constant.
    Matches(Box<[Node; 2]>, Option<Regex>),
    Conditional(Box<[Node; 3]>),
    /// `a ?: b`: the first if it is true.
    Elvis(Box<[Node; 2]>),
    Member {
        base: Box<Node>,
        name: Arc<str>,
        link: Link,
    },
    Index {
        pair: Box<[Node; 2]>,
        link: Link,
    },
    Slice {
        base: Box<Node>,
        from: Option<Box<Node>>,
        to: Option<Box<Node>>,
    },
    Method {
        base: Box<Node>,
        name: Arc<str>,
        arguments: Vec<Node>,
        link: Link,
    },
    /// The end of a row of members in which some `?.` may cut the row short.
    Chain(Box<Node>),
    Let(Box<[Node; 2]>),
    Sequence(Vec<Node>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Builtin(&'static Builtin, Vec<Node>),
    Predicate {
        predicate: Predicate,
        list: Box<Node>,
        body: Option<Box<Node>>,
        extra: Option<Box<Node>>,
    },
    /// A function of the host, by its place among the names the program uses.
    Call(usize, Vec<Node>),
}

impl Node {
    /// Whether this is a constant, or a choice between constants.
    pub(crate) fn is_literal(&self) -> bool {
        match &self.kind {
            Kind::Constant(_) => true,
            Kind::Conditional(nodes) => nodes[1].is_literal() && nodes[2].is_literal(),
            _ => false,
        }
    }
}

impl Kind {
    /// The depth of the deepest node below.
    pub(crate) fn depth(&self) -> u16 {
        fn deepest<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> u16 {
            nodes.into_iter().map(|node| node.depth).max().unwrap_or(0)
        }
        match self {
            Self::Constant(_) | Self::Global(_) | Self::Local(_) | Self::Env | Self::Pointer(_) => 0,
            Self::Unary(_, node) | Self::Chain(node) => node.depth,
            Self::Binary(_, nodes) | Self::Matches(nodes, _) | Self::Let(nodes) | Self::Elvis(nodes) => {
                deepest(nodes.iter())
            }
            Self::Comparison(first, rest) => first.depth.max(deepest(rest.iter().map(|(_, node)| node))),
            Self::Conditional(nodes) => deepest(nodes.iter()),
            Self::Member { base, .. } => base.depth,
            Self::Index { pair, .. } => deepest(pair.iter()),
            Self::Slice { base, from, to } => {
                let ends = from.iter().chain(to.iter()).map(AsRef::as_ref);
                base.depth.max(deepest(ends))
            }
            Self::Method { base, arguments, .. } => base.depth.max(deepest(arguments)),
            Self::Sequence(nodes) | Self::List(nodes) => deepest(nodes),
            Self::Map(entries) => deepest(entries.iter().flat_map(|(key, value)| [key, value])),
            Self::Builtin(_, arguments) | Self::Call(_, arguments) => deepest(arguments),
            Self::Predicate { list, body, extra, .. } => {
                list.depth.max(deepest(body.iter().chain(extra.iter()).map(AsRef::as_ref)))
            }
        }
    }
}
