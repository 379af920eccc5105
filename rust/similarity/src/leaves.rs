//! The leaves of an argument tree, each with the hash of its path; of many, a sample.

use turnwarden_signature::{Token, Value};

use crate::hash::{hash, mix};

/// Most leaves that a sketch has.
pub(crate) const MAX_LEAVES: usize = 32;

/// Set in the order of leaves below the top level: these are the first to be left out.
pub(crate) const IS_DEEP: u32 = 1 << 31;

/// One leaf of the arguments: a value that is no container, or an empty one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentLeaf {
    /// Hash of the path.
    pub(crate) order: u32,
    /// Where the value begins in the canonical bytes.
    pub(crate) start: usize,
    pub(crate) is_string: bool,
}

/// The leaves of one call's arguments.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    /// Those with the smallest orders, sorted; while they are collected up to four times as many.
    pub(crate) kept: Vec<ArgumentLeaf>,
    /// How many there are below the top level.
    pub(crate) deep_count: usize,
    /// Leaves beyond this order were left out.
    last: Option<u32>,
    open: Vec<Open>,
}

/// A container on the way to where the walk is.
#[derive(Debug)]
struct Open {
    path: u64,
    start: usize,
    /// The path of the next value, once its key was read.
    next_path: Option<u64>,
    is_object: bool,
    /// How many values it has so far.
    count: u64,
}

impl Leaves {
    /// Whether some were left out.
    pub(crate) fn is_partial(&self) -> bool {
        self.last.is_some()
    }

    /// Walks over arguments once; top-level names that `counts` refuses are left out.
    pub(crate) fn collect(&mut self, arguments: Value<'_>, counts: &impl Fn(&[u8]) -> bool) {
        self.kept.clear();
        self.open.clear();
        self.deep_count = 0;
        self.last = None;
        let mut is_ignored = false;
        let length = arguments.as_bytes().len();
        let mut tokens = arguments.tokens();
        loop {
            let start = length - tokens.rest().len();
            let Some(token) = tokens.next() else { break };
            let depth = self.open.len();
            if let Token::String(key) = token
                && let Some(object) = self.open.last_mut().filter(|open| open.awaits_key())
            {
                object.next_path = Some(mix(object.path, hash(6, key)));
                if depth == 1 {
                    is_ignored = !counts(key);
                }
            } else if matches!(token, Token::EndArray | Token::EndObject) {
                let Some(closed) = self.open.pop() else { break };
                if closed.count == 0 && !is_ignored {
                    self.add(closed.path, depth - 1, closed.start, false);
                }
            } else {
                let path = self.open.last_mut().map_or(0, Open::path_of_next);
                match token {
                    Token::BeginArray | Token::BeginObject => self.open.push(Open {
                        path,
                        start,
                        next_path: None,
                        is_object: token == Token::BeginObject,
                        count: 0,
                    }),
                    _ if is_ignored => {}
                    _ => self.add(path, depth, start, matches!(token, Token::String(_))),
                }
            }
        }
        self.cut_back();
    }

    fn add(&mut self, path: u64, depth: usize, start: usize, is_string: bool) {
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
        self.kept.push(ArgumentLeaf {
            order,
            start,
            is_string,
        });
        if self.kept.len() == 4 * MAX_LEAVES {
            self.cut_back();
        }
    }

    fn cut_back(&mut self) {
        self.kept.sort_by_key(|leaf| leaf.order);
        if self.kept.len() > MAX_LEAVES {
            self.kept.truncate(MAX_LEAVES);
            self.last = self.kept.last().map(|leaf| leaf.order);
        }
    }
}

impl Open {
    fn awaits_key(&self) -> bool {
        self.is_object && self.next_path.is_none()
    }

    fn path_of_next(&mut self) -> u64 {
        self.count += 1;
        // An index is hashed otherwise than a key of the same digits.
        self.next_path
            .take()
            .unwrap_or_else(|| mix(self.path.rotate_left(32), self.count))
    }
}
