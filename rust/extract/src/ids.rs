//! Ids for calls to which the model gave none.
//!
//! `call_` and 24 letters and digits (142 bits). Each thread has a generator that is seeded from
//! the operating system, and seeded anew after a fork, so that forked processes do not repeat each
//! other. Whoever forks says so by [`forked`]: asking for the process id would be a system call
//! for each id.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// How often this process, or one that it was forked from, has been forked.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Says that this process has just been forked: the ids of all threads begin anew.
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX: &str = "call_";
const LENGTH: usize = 24;
const LETTERS_OF_A_WORD: usize = 8;

/// `xoshiro256++` by Blackman and Vigna, <https://prng.di.unimi.it>.
#[derive(Clone, Copy)]
struct Generator {
    state: [u64; 4],
    /// The value of `FORKS` at the time of seeding.
    forks: u64,
}

thread_local! {
    static GENERATOR: Cell<Option<Generator>> = const { Cell::new(None) };
}

impl Generator {
    fn seeded(forks: u64) -> Self {
        let seed = getrandom::u64()
            .and_then(|a| Ok([a, getrandom::u64()?, getrandom::u64()?, getrandom::u64()?]));
        let state = seed.unwrap_or_else(|_| std::array::from_fn(|_| fallback()));
        Self {
            state: if state == [0; 4] { [1, 2, 3, 4] } else { state },
            forks,
        }
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        let (b2, a2) = (b ^ c, a ^ d);
        self.state = [a2, b2, c ^ (b << 17), d.rotate_left(45)];
        result
    }
}

/// Seeds for the case that the operating system gives none: the hasher's keys, clock, process.
fn fallback() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    hasher.write_u128(now.map_or(0, |elapsed| elapsed.as_nanos()));
    hasher.finish()
}

/// A new id for a call: `call_` and 24 random letters and digits, unique within a process, across
/// processes and, given [`forked`], after a fork.
#[must_use]
pub fn call_id() -> String {
    let forks = FORKS.load(Ordering::Relaxed);
    GENERATOR.with(|cell| {
        let mut generator = match cell.get() {
            Some(generator) if generator.forks == forks => generator,
            _ => Generator::seeded(forks),
        };
        let mut letters = [0; LENGTH];
        for word in letters.chunks_exact_mut(LETTERS_OF_A_WORD) {
            // The word is a fraction, read digit by digit in base 62: the bias is below 2^-16.
            let mut fraction = generator.next();
            for letter in word {
                let scaled = u128::from(fraction) * 62;
                let digit = usize::try_from(scaled >> 64).unwrap_or(0);
                *letter = LETTERS.get(digit).copied().unwrap_or(b'0');
                fraction = fraction.wrapping_mul(62);
            }
        }
        cell.set(Some(generator));
        let mut id = String::with_capacity(PREFIX.len() + LENGTH);
        id.push_str(PREFIX);
        id.push_str(str::from_utf8(&letters).unwrap_or_default());
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_well_formed_and_differ() {
        let ids: HashSet<String> = (0..10_000).map(|_| call_id()).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            let letters = id.strip_prefix("call_").unwrap();
            assert_eq!(letters.len(), 24);
            assert!(letters.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn a_fork_seeds_anew() {
        let _ = call_id();
        let mut parent = GENERATOR.get().unwrap();
        forked();
        let _ = call_id();
        for _ in 0..LENGTH / LETTERS_OF_A_WORD {
            parent.next();
        }
        assert_ne!(GENERATOR.get().unwrap().state, parent.state);
    }
}
