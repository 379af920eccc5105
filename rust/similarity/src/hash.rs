//! A small fast hash that is the same on every machine and in every release: sketches are kept in
//! snapshots.
//!
//! The multiply-and-fold construction of Wang Yi's wyhash: 16 bytes a step, each multiplied into
//! 128 bits whose halves are added without carry.

const KEYS: [u64; 3] = [
    0x9E37_79B9_7F4A_7C15, // the golden ratio
    0xD1B5_4A32_D192_ED03, // harmonious numbers of two and three dimensions
    0xABC9_8388_FB8F_AC03,
];

/// Mixes two words into one.
#[inline]
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left ^ KEYS[0]) * u128::from(right ^ KEYS[1]);
    low_word(product) ^ low_word(product >> 64)
}

/// Hashes bytes, differently for each seed.
#[inline]
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ KEYS[2];
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<16>()
        && !after.is_empty()
    {
        let (low, high) = halves(chunk);
        state = mix(state ^ low, high);
        rest = after;
    }
    let (low, high) = tail(rest);
    mix(mix(state ^ low, high), bytes.len() as u64)
}

/// Sixteen bytes as two words.
#[inline]
pub(crate) const fn halves(chunk: &[u8; 16]) -> (u64, u64) {
    let word = u128::from_le_bytes(*chunk);
    (low_word(word), low_word(word >> 64))
}

/// Up to 16 bytes as two words, which overlap where there are fewer.
#[inline]
fn tail(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let word = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
        return (word(first), word(last));
    }
    let at = |index: usize| bytes.get(index).map_or(0, |&byte| u64::from(byte));
    let middle = at(bytes.len() / 2);
    let last = bytes.last().map_or(0, |&byte| u64::from(byte));
    (at(0) << 16 | middle << 8 | last, 0)
}

#[allow(clippy::cast_possible_truncation)] // that is what it is for
const fn low_word(value: u128) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash(0, b""), 9_955_737_338_744_691_562);
    }

    #[test]
    fn every_length_and_place_counts() {
        let zeros = [0_u8; 100];
        let mut seen: HashSet<u64> = (0..100).map(|length| hash(1, &zeros[..length])).collect();
        for length in 1..100 {
            for place in 0..length {
                let mut bytes = zeros;
                bytes[place] = 1;
                seen.insert(hash(1, &bytes[..length]));
            }
        }
        assert_eq!(seen.len(), 100 + (1..100).sum::<usize>());
    }
}
