//! What a call keeps of its arguments to be compared by.

use std::cell::RefCell;

use turnwarden_signature::Value;

use crate::bytes::{Bytes, count_byte, push_varint};
use crate::hash::hash;
use crate::leaf::{Leaf, Room, write_leaf};
use crate::leaves::{IS_DEEP, Leaves, MAX_LEAVES};
use crate::numbers::top_half;

/// No sketch is larger.
pub const MAX_SKETCH_BYTES: usize = 2048;

/// Set beside the number of leaves when there are more.
const IS_PARTIAL: u8 = 0x80;

/// The argument tree of one call in compact, capped form.
///
/// Up to 32 leaves with a hash of their path: those of the top level first, of deeper ones a
/// sample. Numbers and short strings are in it as they are, long strings as a sample of their
/// words. Two short arguments take about 30 bytes, a prompt of any length about 250; the most is
/// [`MAX_SKETCH_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sketch {
    bytes: Box<[u8]>,
}

impl Sketch {
    /// The sketch of canonical arguments. Linear in their size.
    #[must_use]
    pub fn of(arguments: Value<'_>) -> Self {
        Self::of_some(arguments, |_| true)
    }

    /// The sketch without the top-level arguments that `counts` refuses.
    #[must_use]
    pub fn of_some(arguments: Value<'_>, counts: impl Fn(&[u8]) -> bool) -> Self {
        thread_local! {
            static WORKSPACE: RefCell<Workspace> = RefCell::default();
        }
        let make = |workspace: &mut Workspace| {
            workspace.leaves.collect(arguments, &counts);
            workspace.bytes.clear();
            write_sketch(arguments.as_bytes(), workspace);
            Self {
                bytes: workspace.bytes.as_slice().into(),
            }
        };
        WORKSPACE.with(|workspace| match workspace.try_borrow_mut() {
            Ok(mut workspace) => make(&mut workspace),
            Err(_) => make(&mut Workspace::default()), // called by `counts`
        })
    }

    /// The packed bytes, for snapshots.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The sketch with these packed bytes; `None` when they are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes)?;
        let mut before = None;
        for (order, _) in reader.by_ref() {
            if before.is_some_and(|before| before > order) {
                return None;
            }
            before = Some(order);
        }
        let is_whole = reader.remaining == 0 && reader.bytes.0.is_empty();
        is_whole.then(|| Self {
            bytes: bytes.into(),
        })
    }

    /// How alike the arguments of two calls are: symmetric, from 0 to 1, and 1 for equal ones.
    ///
    /// The leaves of both are aligned by path. Each weighs `log2(2 + length)`, the length that of
    /// a string in characters and of any other value as JSON; a leaf that only one side has is
    /// unlike. Strings are alike by `1 - Indel distance / total length`: exactly up to 127 bytes,
    /// estimated from samples of their words beyond; other values are equal or not. An empty
    /// list or object is a leaf.
    ///
    /// Costs about a microsecond at most, whatever the size of the arguments was.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> f64 {
        if self.bytes == other.bytes {
            return 1.0;
        }
        let (Some(left), Some(right)) = (Reader::new(&self.bytes), Reader::new(&other.bytes))
        else {
            return 0.0;
        };
        // Different bytes are different arguments.
        similarity(left, right).clamp(0.0, 1.0 - f64::EPSILON)
    }

    pub(crate) fn leaves(&self) -> impl Iterator<Item = (u32, Leaf<'_>)> {
        Reader::new(&self.bytes).into_iter().flatten()
    }
}

/// What a thread keeps between sketches.
#[derive(Default)]
struct Workspace {
    leaves: Leaves,
    bytes: Vec<u8>,
}

fn write_sketch(canonical: &[u8], workspace: &mut Workspace) {
    let Workspace { leaves, bytes } = workspace;
    let partial = if leaves.is_partial() { IS_PARTIAL } else { 0 };
    bytes.push(count_byte(leaves.kept.len()) | partial);
    if leaves.is_partial() {
        push_varint(bytes, leaves.deep_count as u64);
        let identity = top_half(hash(7, canonical));
        bytes.extend_from_slice(&identity.to_le_bytes());
    }
    let room = room_for(leaves);
    for leaf in &leaves.kept {
        bytes.extend_from_slice(&leaf.order.to_le_bytes());
        write_leaf(canonical.get(leaf.start..).unwrap_or_default(), room, bytes);
    }
}

/// The more strings there are, the less room each gets.
fn room_for(leaves: &Leaves) -> Room {
    let strings = leaves.kept.iter().filter(|leaf| leaf.is_string);
    let (text, words) = match strings.count() {
        0..=2 => (127, 64),
        3..=4 => (127, 32),
        5..=8 => (64, 16),
        9..=16 => (32, 8),
        _ => (16, 4),
    };
    Room { text, words }
}

/// Reads a sketch leaf by leaf.
struct Reader<'a> {
    bytes: Bytes<'a>,
    remaining: u8,
    /// How many leaves below the top level the arguments have, when some were left out.
    deep_count_of_all: Option<u64>,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let count = bytes.byte()?;
        let deep_count_of_all = if count & IS_PARTIAL == 0 {
            None
        } else {
            let deep_count = bytes.varint()?;
            let _identity = bytes.u32()?;
            Some(deep_count)
        };
        let remaining = count & !IS_PARTIAL;
        (usize::from(remaining) <= MAX_LEAVES).then_some(Self {
            bytes,
            remaining,
            deep_count_of_all,
        })
    }

    /// How many leaves below the top level the arguments have.
    #[allow(clippy::cast_precision_loss)] // a weight
    fn deep_count(&self) -> f64 {
        let all = self.deep_count_of_all.map(|count| count as f64);
        all.unwrap_or_else(|| {
            let rest = Self { ..*self };
            rest.filter(|(order, _)| order & IS_DEEP != 0).count() as f64
        })
    }

    /// The last path that is known: leaves beyond it may be missing.
    fn end(&self) -> u32 {
        if self.deep_count_of_all.is_none() {
            return u32::MAX;
        }
        let rest = Self { ..*self };
        rest.last().map_or(0, |(order, _)| order)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = (u32, Leaf<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        let order = self.bytes.u32()?;
        let leaf = Leaf::read_from(&mut self.bytes)?;
        self.remaining -= 1;
        Some((order, leaf))
    }
}

/// The weights of a set of leaves, and how much of them is alike.
#[derive(Default)]
struct Weights {
    alike: f64,
    total: f64,
}

impl Weights {
    fn add(&mut self, weight: f64, similarity: f64) {
        self.total += weight;
        self.alike += weight * similarity;
    }
}

fn similarity(mut left: Reader<'_>, mut right: Reader<'_>) -> f64 {
    let deep_count = left.deep_count() + right.deep_count();
    let end = left.end().min(right.end());
    let (mut top, mut deep) = (Weights::default(), Weights::default());
    let mut deep_known = 0.0;
    let (mut l, mut r) = (left.next(), right.next());
    loop {
        let orders = [l, r].map(|leaf| leaf.map_or(u64::MAX, |(order, _)| u64::from(order)));
        let order = orders[0].min(orders[1]);
        if order > u64::from(end) {
            break;
        }
        let one = l.filter(|_| orders[0] == order).map(|(_, leaf)| leaf);
        let other = r.filter(|_| orders[1] == order).map(|(_, leaf)| leaf);
        let weights = if order & u64::from(IS_DEEP) == 0 {
            &mut top
        } else {
            deep_known += f64::from(u8::from(one.is_some()) + u8::from(other.is_some()));
            &mut deep
        };
        match (one, other) {
            (Some(one), Some(other)) => {
                let weight = one.weight().max(other.weight());
                weights.add(weight, one.similarity(&other));
                (l, r) = (left.next(), right.next());
            }
            (Some(only), _) => {
                weights.add(only.weight(), 0.0);
                l = left.next();
            }
            (None, Some(only)) => {
                weights.add(only.weight(), 0.0);
                r = right.next();
            }
            (None, None) => break,
        }
    }
    // How many deep leaves each known one stands for.
    let scale = if deep_known < 1.0 {
        1.0
    } else {
        deep_count / deep_known
    };
    let total = top.total + scale * deep.total;
    if total > 0.0 {
        (top.alike + scale * deep.alike) / total
    } else {
        1.0
    }
}
