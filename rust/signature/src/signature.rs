//! The hash of a call.

use std::cell::RefCell;
use std::fmt;

use crate::canon::Canon;
use crate::value::Value;

/// Says which canon was hashed; part of every signature.
const CANON_VERSION: u8 = 1;

/// Memory that a thread keeps between signatures.
const KEPT_CAPACITY: usize = 64 * 1024;

/// 128 bits of BLAKE3 over canon version, tool name and canonical arguments.
///
/// Stable across processes, machines and releases. Equal signatures are taken as equal calls.
/// Displayed as 32 hexadecimal digits.
///
/// ```
/// use turnwarden_signature::signature_of_json;
///
/// let one = signature_of_json("search", r#"{"q": "tea", "page": 1}"#);
/// let same = signature_of_json("search", r#"{"page":1.0,"q":"te\u0061"}"#);
/// assert_eq!(one, same);
/// assert_eq!(one.to_string().len(), 32);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature([u8; 16]);

impl Signature {
    /// The signature of a call of the tool `name` with these arguments.
    #[must_use]
    pub fn of(name: &str, arguments: &Canon) -> Self {
        Self::of_bytes(name.as_bytes(), arguments.as_bytes())
    }

    /// The same for a name that may hold lone surrogates (WTF-8) and the bytes of a canon.
    #[must_use]
    pub fn of_bytes(name: &[u8], arguments: &[u8]) -> Self {
        with_scratch(|scratch| {
            begin(scratch, name);
            scratch.extend(arguments);
            Self::of_written(scratch)
        })
    }

    /// The signature of the call without the top-level arguments that `counts` refuses.
    ///
    /// Arguments that are no object have no names: they are taken whole.
    #[must_use]
    pub fn of_some(name: &[u8], arguments: Value<'_>, counts: impl Fn(&[u8]) -> bool) -> Self {
        if !arguments.is_object() {
            return Self::of_bytes(name, arguments.as_bytes());
        }
        with_scratch(|scratch| {
            begin(scratch, name);
            scratch.begin_object();
            for (key, value) in arguments.members().filter(|(key, _)| counts(key)) {
                scratch.string(key);
                scratch.extend(value.as_bytes());
            }
            scratch.end_object();
            Self::of_written(scratch)
        })
    }

    /// Starts a canon whose arguments can be hashed where they stand: [`Self::of_written`].
    pub fn begin(scratch: &mut Canon, name: &[u8]) -> usize {
        begin(scratch, name);
        scratch.len()
    }

    /// The signature of a call written whole: [`Self::begin`], then the arguments.
    #[must_use]
    pub fn of_written(call: &Canon) -> Self {
        Self(first_half(blake3::hash(call.as_bytes()).as_bytes()))
    }

    /// The signature with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The bytes as a number, highest byte first.
    #[must_use]
    pub const fn to_u128(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The 32 hexadecimal digits, ASCII.
    #[must_use]
    pub fn to_hex(self) -> [u8; 32] {
        let mut hex = [0; 32];
        let (words, digits) = (self.0.chunks_exact(4), hex.chunks_exact_mut(8));
        for (word, digits) in words.zip(digits) {
            if let Some(word) = word.first_chunk() {
                digits.copy_from_slice(&hex_digits(u32::from_be_bytes(*word)));
            }
        }
        hex
    }
}

/// The eight digits of a word, found at once: one digit a byte.
fn hex_digits(word: u32) -> [u8; 8] {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let spread = u64::from(word);
    let spread = (spread << 16 | spread) & 0x0000_FFFF_0000_FFFF;
    let spread = (spread << 8 | spread) & 0x00FF_00FF_00FF_00FF;
    let nibbles = (spread << 4 | spread) & 0x0F0F_0F0F_0F0F_0F0F;
    let is_letter = (nibbles + EACH * 6) >> 4 & EACH;
    let to_letter = u64::from(b'a' - b'0' - 10);
    (nibbles + EACH * u64::from(b'0') + is_letter * to_letter).to_be_bytes()
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.to_u128())
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Signature({self})")
    }
}

/// The signature of a call whose arguments are JSON text, without building values.
///
/// White space, key order and escapes do not matter; empty text and `null` are `{}`; text that is
/// no JSON counts as a string. n log n in the text at worst, no recursion on its depth.
#[must_use]
pub fn signature_of_json(name: &str, arguments: &str) -> Signature {
    with_scratch(|scratch| {
        begin(scratch, name.as_bytes());
        scratch.arguments_text(arguments.as_bytes());
        Signature::of_written(scratch)
    })
}

fn begin(scratch: &mut Canon, name: &[u8]) {
    scratch.push_raw(CANON_VERSION);
    scratch.string(name);
}

/// Runs `work` with this thread's buffer, empty, so that signing a call allocates nothing.
pub fn with_scratch<T>(work: impl FnOnce(&mut Canon) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Canon> = RefCell::default();
    }
    SCRATCH.with(|cell| match cell.try_borrow_mut() {
        Ok(mut scratch) => {
            scratch.clear(KEPT_CAPACITY);
            work(&mut scratch)
        }
        // Called from within `work`: an own buffer will do.
        Err(_) => work(&mut Canon::default()),
    })
}

fn first_half(hash: &[u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    for (to, from) in half.iter_mut().zip(hash) {
        *to = *from;
    }
    half
}
