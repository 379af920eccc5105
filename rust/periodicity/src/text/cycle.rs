//! Exact cycles at the end of a text, of any length up to [`LONGEST`].
//!
//! A rolling hash of the last 32 bytes (a gear hash, as used for content-defined chunking: Xia et
//! al., "Ddelta", 2014) is looked up in a small table of where it was last seen. The distance is a
//! candidate for the period; from then on each byte is compared with the one a period back, so a
//! cycle is never a matter of hashes alone. A table look-up and a comparison a byte, whatever the
//! length of the cycle.

/// The longest cycle that is found, in bytes.
pub(super) const LONGEST: usize = 4096;
/// Bytes that are kept: three laps of the longest cycle, and one before them.
const RING: usize = 4 * LONGEST;
/// Hashes that are remembered. More would find long cycles a few bytes earlier.
const SLOTS: usize = 2048;
/// After so many equal bytes it is worth looking where the cycle began.
const SETTLED: usize = 32;
/// How far back that look goes: the bytes that the hash covers, and those that were overwritten.
const LOOK_BACK: usize = 256;

/// A number for each byte, from a multiplicative generator.
const GEAR: [u32; 256] = {
    let mut table = [0; 256];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut byte = 0;
    while byte < table.len() {
        state = state
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        table[byte] = (state >> 32) as u32;
        byte += 1;
    }
    table
};

/// Where a hash was last seen: one past the last of its bytes, 0 for nowhere.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    hash: u32,
    at: u32,
}

/// A stretch at the end of the text that repeats with a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Its first byte.
    pub(super) start: usize,
    /// Bytes of one lap.
    pub(super) period: usize,
    /// Bytes in all.
    pub(super) length: usize,
}

/// Finds cycles, byte by byte.
#[derive(Clone, Debug)]
pub(super) struct Cycles {
    ring: Box<[u8; RING]>,
    seen: Box<[Seen; SLOTS]>,
    hash: u32,
    /// Bytes read.
    at: usize,
    /// The candidate; 0 for none.
    period: usize,
    /// So many last bytes equal those a period back.
    run: usize,
    /// So many bytes before those do, too.
    back: usize,
}

impl Default for Cycles {
    fn default() -> Self {
        Self {
            ring: Box::new([0; RING]),
            seen: Box::new([Seen::default(); SLOTS]),
            hash: 0,
            at: 0,
            period: 0,
            run: 0,
            back: 0,
        }
    }
}

impl Cycles {
    /// Takes the next byte.
    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        if self.period != 0 {
            if self.ring[self.at.wrapping_sub(self.period) % RING] == byte {
                self.run += 1;
                if self.run == SETTLED {
                    self.back = self.equal_before(LOOK_BACK);
                }
            } else {
                self.period = 0;
            }
        }
        self.ring[self.at % RING] = byte;
        self.at += 1;
        self.hash = (self.hash << 1).wrapping_add(GEAR[usize::from(byte)]);
        let seen = &mut self.seen[(self.hash >> 21) as usize % SLOTS];
        // Positions wrap beyond 4 GiB; distances do not.
        #[allow(clippy::cast_possible_truncation)]
        let at = self.at as u32;
        if self.period == 0 && seen.hash == self.hash && seen.at != 0 {
            let distance = at.wrapping_sub(seen.at) as usize;
            if distance <= LONGEST {
                self.period = distance;
                self.run = 0;
                self.back = 0;
            }
        }
        *seen = Seen {
            hash: self.hash,
            at,
        };
    }

    /// Bytes read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The stretch that the text ends with, as far as it was compared.
    #[inline]
    pub(super) fn stretch(&self) -> Option<Stretch> {
        if self.period == 0 || self.run < SETTLED {
            return None;
        }
        let length = self.run + self.back + self.period;
        Some(Stretch {
            start: self.at - length,
            period: self.period,
            length,
        })
    }

    /// The same stretch with its exact beginning, as far as the bytes are kept; it begins with a
    /// whole character.
    pub(super) fn whole_stretch(&mut self) -> Option<Stretch> {
        self.stretch()?;
        self.back = self.equal_before(RING);
        let mut stretch = self.stretch()?;
        while stretch.length > 0 && self.ring[stretch.start % RING] & 0xC0 == 0x80 {
            stretch.start += 1;
            stretch.length -= 1;
        }
        Some(stretch)
    }

    /// The bytes of the last lap.
    pub(super) fn lap(&self) -> impl Iterator<Item = u8> {
        let from = self.at - self.period;
        (from..self.at).map(|at| self.ring[at % RING])
    }

    /// How many bytes before the compared ones equal those a period back, at most so many.
    fn equal_before(&self, most: usize) -> usize {
        let kept = self.at.min(RING);
        let compared = self.run + self.period;
        let room = kept.saturating_sub(compared).min(most);
        let from = self.at - self.run;
        let equal = |&back: &usize| {
            self.ring[(from - back) % RING] == self.ring[(from - back - self.period) % RING]
        };
        let found = (1..=room).take_while(equal).count();
        found.max(self.back)
    }
}
