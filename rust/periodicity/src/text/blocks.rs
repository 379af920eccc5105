//! Blocks of text (sentences, paragraphs) that say almost what one of the last few said.
//!
//! A block is the set of its words and of its pairs of neighbours, hashed into slots. Each slot
//! knows, as one bit each, in which of the last blocks it stood; so a word of a new block is
//! counted for all of them at once, in counters that lie across the bits (as in bit-sliced
//! arithmetic), and the Dice coefficient with each is there when the block ends. The cost is that
//! of its words, whatever the number of blocks that are remembered.

/// Slots that words are hashed into.
const SLOTS: usize = 1024;
/// Bits of a count: at most 255 words and pairs of a block are looked at.
const PLANES: usize = 8;
/// Two blocks are alike from this Dice coefficient on, in tenths.
const ALIKE: usize = 7;
/// Below this part of its own words (in thousandths) that another has, too, a block cannot be
/// alike to it: it follows from `ALIKE`.
const LEAST_SHARED: usize = 538;
/// What a block counts: one that says nothing new, one with other numbers, one with a word that is
/// new, a new one.
const STALE: i64 = 3;
const RENUMBERED: i64 = 1;
const REWORDED: i64 = 0;
const FRESH: i64 = -6;

/// Slots of rows that are remembered before their memory begins anew.
const ROW_SLOTS: u32 = 512;

/// How many blocks are remembered, and how many stale ones are a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Blocks that are remembered, at most 32.
    pub(super) window: usize,
    /// Words and pairs of a block that are looked at, at most 255.
    pub(super) most: usize,
    /// Stale blocks, less twice the fresh ones, that are a loop,
    pub(super) least_blocks: i64,
    /// once they hold so many bytes.
    pub(super) least_bytes: i64,
}

/// What repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repetition {
    /// Where the first block began that is said again.
    pub(super) start: usize,
    /// How far it is from a block to the one that it repeats.
    pub(super) period: usize,
}

/// The last blocks, and the one that is being read.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    shape: Shape,
    /// For each slot, the blocks that have it.
    having: Box<[u32; SLOTS]>,
    /// For each block, its slots: `shape.most` places each.
    slots: Vec<u16>,
    lengths: [usize; 32],
    starts: [usize; 32],
    /// For each block, the numbers in it as one, and how far that was from its like.
    numbers: [u64; 32],
    steps: [Option<u64>; 32],
    current: usize,
    /// How many words the current block shares with each: plane `i` holds bit `i` of all counts.
    shared: [u32; PLANES],
    /// Whether the current block has a word that no other has.
    has_new_word: bool,
    /// Which slots stood in one of the last rows.
    rows: [u64; SLOTS / 64],
    /// What the last blocks count, and what their bytes do.
    stale: i64,
    stale_bytes: i64,
    /// Whether the last block was alike to another, or what is stale outweighs it.
    goes_on: bool,
    repetition: Repetition,
}

impl Blocks {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            having: Box::new([0; SLOTS]),
            slots: vec![0; shape.window * shape.most],
            lengths: [0; 32],
            starts: [0; 32],
            numbers: [0; 32],
            steps: [None; 32],
            current: 0,
            shared: [0; PLANES],
            has_new_word: false,
            rows: [0; SLOTS / 64],
            stale: 0,
            stale_bytes: 0,
            goes_on: false,
            repetition: Repetition {
                start: 0,
                period: 0,
            },
        }
    }

    /// Adds a word to the current block, or a pair of words.
    pub(super) fn add(&mut self, hash: u32, is_word: bool) {
        let length = self.lengths[self.current % 32];
        let own = 1_u32 << (self.current % 32);
        let slot = (hash >> 22) as usize % SLOTS;
        let having = self.having[slot];
        if length >= self.shape.most || having & own != 0 {
            return;
        }
        self.has_new_word |= is_word && having == 0;
        let mut carry = having;
        for plane in &mut self.shared {
            if carry == 0 {
                break;
            }
            let both = *plane & carry;
            *plane ^= carry;
            carry = both;
        }
        self.having[slot] = having | own;
        let place = self.current * self.shape.most + length;
        if let (Some(kept), Ok(slot)) = (self.slots.get_mut(place), u16::try_from(slot)) {
            *kept = slot;
            self.lengths[self.current % 32] = length + 1;
        }
    }

    /// Ends a row of which the current block consists: a heading, an item of a list, an entry. One
    /// that says something new begins something new.
    pub(super) fn end_row(&mut self) {
        let from = self.current * self.shape.most;
        let length = self.lengths[self.current % 32];
        let mut is_new = false;
        for place in from..from + length {
            let slot = self.slots.get(place).copied().unwrap_or_default();
            is_new |= self.enter_row(usize::from(slot));
        }
        self.discard();
        if is_new {
            self.begin_anew();
        }
    }

    /// Ends a block of code, known by its hash: a new one begins something new.
    pub(super) fn end_code(&mut self, hash: u32) {
        if self.enter_row((hash >> 22) as usize) {
            self.begin_anew();
        }
    }

    /// Notes a slot of a row; returns whether none of the last rows had it.
    fn enter_row(&mut self, slot: usize) -> bool {
        let slot = slot % SLOTS;
        let own = 1_u64 << (slot % 64);
        if self.rows[slot / 64] & own != 0 {
            return false;
        }
        let held: u32 = self.rows.iter().map(|bits| bits.count_ones()).sum();
        if held >= ROW_SLOTS {
            self.rows = [0; SLOTS / 64];
        }
        self.rows[slot / 64] |= own;
        true
    }

    /// Forgets the current block.
    pub(super) fn discard(&mut self) {
        self.forget(self.current);
        self.shared = [0; PLANES];
        self.has_new_word = false;
    }

    /// Ends the current block, which began at `start`, has so many bytes, and these numbers. One
    /// that is to be the same in all words counts only then.
    pub(super) fn end(
        &mut self,
        start: usize,
        bytes: usize,
        numbers: u64,
        to_the_word: bool,
    ) -> Option<Repetition> {
        let alike = self.most_alike(to_the_word);
        let counts = self.count_on(numbers, alike);
        let weight = match alike {
            Some(_) if self.has_new_word => REWORDED,
            Some(_) if !counts => RENUMBERED,
            Some(_) => STALE,
            None => FRESH,
        };
        if let (Some(alike), false) = (alike, self.goes_on) {
            self.repetition.start = self.starts[alike % 32];
        }
        if let Some(alike) = alike {
            self.repetition.period = start - self.starts[alike % 32];
        }
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.stale = (self.stale + weight).max(0);
        self.stale_bytes = (self.stale_bytes + bytes.saturating_mul(weight)).max(0);
        if self.stale == 0 {
            self.stale_bytes = 0;
        }
        self.goes_on = alike.is_some() || self.stale > 0;
        self.starts[self.current % 32] = start;
        self.shared = [0; PLANES];
        self.has_new_word = false;
        self.current = (self.current + 1) % self.shape.window;
        self.forget(self.current);
        let is_loop = self.stale >= STALE * self.shape.least_blocks
            && self.stale_bytes >= STALE * self.shape.least_bytes;
        is_loop.then_some(self.repetition)
    }

    /// Keeps the numbers of the current block; returns whether they are those of its like, or have
    /// moved on as far as its like's had. Numbers that move in another way say something.
    fn count_on(&mut self, numbers: u64, alike: Option<usize>) -> bool {
        let step = alike.map(|alike| numbers.wrapping_sub(self.numbers[alike % 32]));
        let before = alike.and_then(|alike| self.steps[alike % 32]);
        self.numbers[self.current % 32] = numbers;
        self.steps[self.current % 32] = step;
        match (step, before) {
            (Some(step), Some(before)) => step == 0 || step == before,
            _ => true,
        }
    }

    /// Counts from nothing again; what was said stays known.
    pub(super) fn begin_anew(&mut self) {
        self.stale = 0;
        self.stale_bytes = 0;
        self.goes_on = false;
    }

    fn forget(&mut self, block: usize) {
        let others = !(1_u32 << (block % 32));
        let from = block * self.shape.most;
        let length = std::mem::take(&mut self.lengths[block % 32]);
        let slots = self.slots.get(from..from + length).unwrap_or_default();
        for &slot in slots {
            self.having[usize::from(slot) % SLOTS] &= others;
        }
    }

    /// The block that the current one is most like, the latest of several, if it is like one.
    fn most_alike(&self, to_the_word: bool) -> Option<usize> {
        let own = self.lengths[self.current % 32];
        let least = if to_the_word {
            own
        } else {
            (own * LEAST_SHARED).div_ceil(1000)
        };
        let mut best: Option<(usize, usize, usize)> = None;
        let mut candidates = self.sharing(least.max(1)) & !(1 << (self.current % 32));
        while candidates != 0 {
            let block = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let shared = self.count(block);
            let both = own + self.lengths[block % 32];
            let is_alike = if to_the_word {
                2 * shared == both
            } else {
                20 * shared >= ALIKE * both
            };
            let is_better = best.is_none_or(|(_, most, of)| {
                let (new, old) = (shared * of, most * both);
                new > old || (new == old && self.is_later(block, best.map_or(0, |best| best.0)))
            });
            if is_alike && is_better {
                best = Some((block, shared, both));
            }
        }
        best.map(|(block, _, _)| block)
    }

    fn is_later(&self, block: usize, other: usize) -> bool {
        self.starts[block % 32] > self.starts[other % 32]
    }

    fn count(&self, block: usize) -> usize {
        let bits = self.shared.iter().enumerate();
        bits.map(|(bit, plane)| ((plane >> block) as usize & 1) << bit)
            .sum()
    }

    /// The blocks that share so many words or more.
    fn sharing(&self, least: usize) -> u32 {
        let (mut more, mut equal) = (0, u32::MAX);
        for (bit, plane) in self.shared.iter().enumerate().rev() {
            if least >> bit & 1 == 1 {
                equal &= plane;
            } else {
                more |= equal & plane;
                equal &= !plane;
            }
        }
        if least >> PLANES == 0 {
            more | equal
        } else {
            0
        }
    }
}
