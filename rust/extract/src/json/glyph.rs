//! What a character means outside strings, ASCII or not.

/// Kinds of quotes; a string ends with a quote of the kind that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quote {
    /// `"`, the quote of JSON.
    Double,
    /// `'`.
    Single,
    /// A backtick or an acute accent.
    Backtick,
    /// Curly, low and full-width double quotes.
    CurlyDouble,
    /// Curly, low and full-width single quotes.
    CurlySingle,
    /// Corner brackets and guillemets: the opener differs from the closer.
    Paired(char),
    /// `\"`: the quote of a document that was escaped once.
    EscapedDouble,
    /// `"""` or `'''`, as in Python.
    TripleDouble,
    /// As above.
    TripleSingle,
    /// `""`: the quote of a document whose quotes were doubled.
    Doubled,
}

/// What a character is to the structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glyph {
    Space,
    Newline,
    Comma,
    Semicolon,
    Colon,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    OpenParen,
    CloseParen,
    Quote(Quote),
    Backslash,
    Slash,
    Hash,
    Dot,
    Plus,
    Equals,
    /// Letters, digits, and what else numbers and names are made of.
    Word,
    Other,
}

/// A character with its meaning and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) glyph: Glyph,
    pub(super) length: usize,
    /// Whether strict JSON knows the character in this meaning.
    pub(super) plain: bool,
}

/// The character at `at`, or None at the end of the text.
#[inline]
pub(super) fn glyph_at(text: &str, at: usize) -> Option<Seen> {
    let byte = *text.as_bytes().get(at)?;
    match ASCII.get(usize::from(byte)) {
        Some(seen) => Some(*seen),
        None => wide_glyph(text, at),
    }
}

static ASCII: [Seen; 128] = ascii();

#[allow(clippy::cast_possible_truncation)] // The index is below 128.
const fn ascii() -> [Seen; 128] {
    let mut table = [ascii_glyph(0); 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = ascii_glyph(byte as u8);
        byte += 1;
    }
    table
}

const fn ascii_glyph(byte: u8) -> Seen {
    let (glyph, plain) = match byte {
        b' ' | b'\t' | b'\r' => (Glyph::Space, true),
        b'\n' => (Glyph::Newline, true),
        0x0b | 0x0c => (Glyph::Space, false),
        b',' => (Glyph::Comma, true),
        b';' => (Glyph::Semicolon, false),
        b':' => (Glyph::Colon, true),
        b'{' => (Glyph::OpenBrace, true),
        b'}' => (Glyph::CloseBrace, true),
        b'[' => (Glyph::OpenBracket, true),
        b']' => (Glyph::CloseBracket, true),
        b'(' => (Glyph::OpenParen, false),
        b')' => (Glyph::CloseParen, false),
        b'"' => (Glyph::Quote(Quote::Double), true),
        b'\'' => (Glyph::Quote(Quote::Single), false),
        b'`' => (Glyph::Quote(Quote::Backtick), false),
        b'\\' => (Glyph::Backslash, false),
        b'/' => (Glyph::Slash, false),
        b'#' => (Glyph::Hash, false),
        b'.' => (Glyph::Dot, false),
        b'+' => (Glyph::Plus, false),
        b'=' => (Glyph::Equals, false),
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'-' => (Glyph::Word, true),
        _ => (Glyph::Other, false),
    };
    Seen {
        glyph,
        length: 1,
        plain,
    }
}

#[cold]
fn wide_glyph(text: &str, at: usize) -> Option<Seen> {
    let character = text.get(at..)?.chars().next()?;
    let glyph = match character {
        '\u{ff0c}' | '\u{3001}' | '\u{fe50}' => Glyph::Comma,
        '\u{ff1b}' => Glyph::Semicolon,
        '\u{ff1a}' | '\u{fe55}' => Glyph::Colon,
        '\u{ff5b}' => Glyph::OpenBrace,
        '\u{ff5d}' => Glyph::CloseBrace,
        '\u{ff3b}' | '\u{3010}' => Glyph::OpenBracket,
        '\u{ff3d}' | '\u{3011}' => Glyph::CloseBracket,
        '\u{ff08}' => Glyph::OpenParen,
        '\u{ff09}' => Glyph::CloseParen,
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{ff02}' | '\u{2033}'
        | '\u{301d}' | '\u{301e}' | '\u{301f}' => Glyph::Quote(Quote::CurlyDouble),
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{ff07}' | '\u{2032}' => {
            Glyph::Quote(Quote::CurlySingle)
        }
        '\u{00b4}' | '\u{ff40}' => Glyph::Quote(Quote::Backtick),
        '\u{300c}' => Glyph::Quote(Quote::Paired('\u{300d}')),
        '\u{300e}' => Glyph::Quote(Quote::Paired('\u{300f}')),
        '\u{00ab}' => Glyph::Quote(Quote::Paired('\u{00bb}')),
        '\u{2026}' => Glyph::Dot,
        '\u{2028}' | '\u{2029}' | '\u{0085}' => Glyph::Newline,
        '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{200e}' | '\u{200f}' | '\u{2060}'
        | '\u{feff}' | '\u{180e}' => Glyph::Space,
        _ if character.is_whitespace() => Glyph::Space,
        _ if character.is_alphanumeric() => Glyph::Word,
        _ => Glyph::Other,
    };
    Some(Seen {
        glyph,
        length: character.len_utf8(),
        plain: glyph == Glyph::Word,
    })
}
