//! Strings with lone surrogates: WTF-8, in which halves that meet are one character.

/// Appends a UTF-16 code unit (or any code point); true if it is half of a surrogate pair.
pub(crate) fn push_unit(text: &mut Vec<u8>, unit: u32) -> bool {
    if let Some(character) = char::from_u32(unit) {
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        return false;
    }
    text.extend_from_slice(&[0xED, continuation(unit >> 6), continuation(unit)]);
    true
}

/// Joins each high surrogate with the low one behind it into the character they stand for, as
/// JSON text would.
///
/// ```
/// let mut halves = b"\xED\xA0\xBD\xED\xB8\x80".to_vec();
/// turnwarden_signature::join_surrogates(&mut halves);
/// assert_eq!(halves, "😀".as_bytes());
/// ```
pub fn join_surrogates(text: &mut Vec<u8>) {
    let mut joined = Vec::with_capacity(text.len());
    let mut rest = text.as_slice();
    while let Some((&first, after)) = rest.split_first() {
        if let Some((character, behind)) = pair(rest) {
            joined.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = behind;
        } else {
            joined.push(first);
            rest = after;
        }
    }
    *text = joined;
}

/// The character that the surrogate pair at the start of the text stands for.
fn pair(text: &[u8]) -> Option<(char, &[u8])> {
    let (halves, behind) = text.split_first_chunk::<6>()?;
    let [
        0xED,
        high @ 0xA0..=0xAF,
        high_rest,
        0xED,
        low @ 0xB0..=0xBF,
        low_rest,
    ] = *halves
    else {
        return None;
    };
    let bits = |first: u8, rest: u8| u32::from(first & 0x0F) << 6 | u32::from(rest & 0x3F);
    let character = char::from_u32(0x1_0000 + (bits(high, high_rest) << 10 | bits(low, low_rest)))?;
    Some((character, behind))
}

fn continuation(bits: u32) -> u8 {
    0x80 | (bits & 0x3F) as u8
}
