//! The leaves of an argument tree, each with the hash of its path; of many, a sample.

use turnwarden_signature::{Token, Value};

use crate::hash::{hash, mix};
use crate::leaf::LeafValue;

/// Most leaves that a sketch has.
pub(crate) const MAX_LEAVES: usize = 32;

/// Set in the order of leaves below the top level: these are the first to be left out.
pub(crate) const IS_DEEP: u32 = 1 << 31;

/// One leaf of the arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentLeaf<'a> {
    /// Hash of the path.
    pub(crate) order: u32,
    pub(crate) value: LeafValue<'a>,
}

/// The leaves of one call's arguments.
#[derive(Debug)]
pub(crate) struct Leaves<'a> {
    /// Those with the smallest orders, sorted.
    pub(crate) kept: Vec<ArgumentLeaf<'a>>,
    /// How many there are below the top level.
    pub(crate) deep_count: usize,
    /// Whether some were left out.
    pub(crate) is_partial: bool,
}

/// A container on the way to where the walk is.
struct Open {
    path: u64,
    /// The path of the next value, once its key was read.
    next_path: Option<u64>,
    is_object: bool,
    /// How many values it has so far.
    count: u64,
}

/// Walks over arguments once; top-level names that `counts` refuses are left out.
pub(crate) fn leaves_of<'a>(arguments: Value<'a>, counts: &impl Fn(&[u8]) -> bool) -> Leaves<'a> {
    let mut collector = Collector::default();
    let mut open: Vec<Open> = Vec::new();
    let mut ignored_from = None;
    for token in arguments.tokens() {
        let depth = open.len();
        if let (Token::String(key), Some(object)) = (token, open.last_mut())
            && object.is_object
            && object.next_path.is_none()
        {
            object.next_path = Some(mix(object.path, hash(6, key)));
            if depth == 1 {
                ignored_from = (!counts(key)).then_some(depth);
            }
            continue;
        }
        if matches!(token, Token::EndArray | Token::EndObject) {
            let Some(closed) = open.pop() else { break };
            if closed.count == 0 && ignored_from.is_none() {
                let value = if closed.is_object {
                    LeafValue::EmptyObject
                } else {
                    LeafValue::EmptyArray
                };
                collector.add(closed.path, open.len(), value);
            }
            continue;
        }
        let path = open.last_mut().map_or(0, Open::path_of_next);
        if matches!(token, Token::BeginArray | Token::BeginObject) {
            open.push(Open {
                path,
                next_path: None,
                is_object: token == Token::BeginObject,
                count: 0,
            });
        } else if ignored_from.is_none() {
            collector.add(path, depth, LeafValue::Token(token));
        }
    }
    collector.finish()
}

impl Open {
    fn path_of_next(&mut self) -> u64 {
        self.count += 1;
        // An index is hashed otherwise than a key of the same digits.
        self.next_path
            .take()
            .unwrap_or_else(|| mix(self.path.rotate_left(32), self.count))
    }
}

#[derive(Default)]
struct Collector<'a> {
    leaves: Vec<ArgumentLeaf<'a>>,
    deep_count: usize,
    /// Leaves beyond this order are not among the first [`MAX_LEAVES`].
    last: Option<u32>,
}

impl<'a> Collector<'a> {
    fn add(&mut self, path: u64, depth: usize, value: LeafValue<'a>) {
        let hash = (path >> 32) as u32;
        let order = if depth > 1 {
            self.deep_count += 1;
            hash | IS_DEEP
        } else {
            hash & !IS_DEEP
        };
        if self.last.is_some_and(|last| order > last) {
            return;
        }
        self.leaves.push(ArgumentLeaf { order, value });
        if self.leaves.len() == 4 * MAX_LEAVES {
            self.cut_back();
        }
    }

    fn cut_back(&mut self) {
        self.leaves.sort_by_key(|leaf| leaf.order);
        if self.leaves.len() > MAX_LEAVES {
            self.leaves.truncate(MAX_LEAVES);
            self.last = self.leaves.last().map(|leaf| leaf.order);
        }
    }

    fn finish(mut self) -> Leaves<'a> {
        self.cut_back();
        Leaves {
            kept: self.leaves,
            deep_count: self.deep_count,
            is_partial: self.last.is_some(),
        }
    }
}
