//! What a double quote is, where a glance at the bytes behind it tells.
//!
//! The same answers as [`super::decide::closing`], without reading tokens: it says nothing where
//! anything but plain JSON follows. Texts with very many quotes are read at this speed.

use super::ahead::Input;
use super::decide::{Context, Role, Verdict, verdict};
use super::scan::{skip_space, string_end};

/// Whether the double quote before `at` ends the string, when the next few bytes tell.
pub(super) fn glance(input: Input<'_>, at: usize, context: Context) -> Option<Verdict> {
    let look = Look { input, at, context };
    match context.role {
        Role::Key => look.key(),
        Role::Value => look.value(),
        Role::Item => look.item(),
        Role::Root => None,
    }
}

struct Look<'a> {
    input: Input<'a>,
    at: usize,
    context: Context,
}

impl Look<'_> {
    /// The next byte that is no space, if it cannot begin a closer from outside.
    fn next(&self, from: usize) -> Option<(usize, u8)> {
        let at = skip_space(self.input.bytes(), from);
        let byte = *self.input.bytes().get(at)?;
        (!self.input.closers.may_begin(byte)).then_some((at, byte))
    }

    /// The byte behind the string that begins at `at`.
    fn after_string(&self, at: usize) -> Option<u8> {
        self.string_end(at).map(|(_, byte)| byte)
    }

    /// Where the string ends that begins at `at`, and the byte behind it.
    fn string_end(&self, at: usize) -> Option<(usize, u8)> {
        let bytes = self.input.bytes();
        let mut end = at + 1;
        loop {
            end = string_end(bytes, end);
            match bytes.get(end)? {
                b'"' => break,
                b'\\' if bytes.get(end + 1)?.is_ascii() => end += 2,
                b'\\' => return None,
                _ => end += 1,
            }
        }
        self.next(end + 1).map(|(_, byte)| (end, byte))
    }

    /// Whether a string that ends at `end` may be a key that has lost its closing quote: its text
    /// ends in a colon or in what opens a value.
    fn may_run_on(&self, end: usize) -> bool {
        let text = self.input.bytes().get(..end).unwrap_or_default();
        let last = text.trim_ascii_end().last();
        last.is_none_or(|byte| b":[{,".contains(byte) || !byte.is_ascii())
    }

    fn balanced(&self) -> bool {
        self.context.pairs_up() || !self.context.nested
    }

    fn key(&self) -> Option<Verdict> {
        match self.next(self.at)?.1 {
            b':' => verdict(true),
            _ if self.context.runs_on => None,
            b',' | b'}' | b']' => verdict(self.context.quotes == 0),
            _ => None,
        }
    }

    fn value(&self) -> Option<Verdict> {
        let broken = self.context.quotes > 0;
        match self.next(self.at)? {
            (_, b'}') if !broken => verdict(true),
            (at, b',') => self.comma_in_object(at + 1),
            (at, b'"') if broken && at > self.at => match self.after_string(at)? {
                b':' => verdict(true),
                byte if byte.is_ascii() => verdict(false),
                _ => None,
            },
            (_, b':' | b'{' | b'[' | b'(') => verdict(false),
            (_, byte) if byte.is_ascii_alphabetic() && !self.context.pairs_up() => verdict(false),
            (_, byte) if is_mark(byte) => verdict(false),
            _ => None,
        }
    }

    fn comma_in_object(&self, from: usize) -> Option<Verdict> {
        let broken = self.context.quotes > 0;
        match self.next(from)? {
            (at, b'"') => match self.string_end(at)? {
                (_, b':') => verdict(self.balanced()),
                (end, b',' | b'}' | b']') if !broken && self.may_run_on(end) => None,
                (_, b',' | b'}' | b']') => verdict(false),
                (_, byte) if broken && (byte == b'"' || byte.is_ascii_alphabetic()) => {
                    verdict(false)
                }
                _ => None,
            },
            (_, byte) if byte.is_ascii_alphabetic() && !self.context.pairs_up() => verdict(false),
            _ => None,
        }
    }

    fn item(&self) -> Option<Verdict> {
        let broken = self.context.quotes > 0;
        match self.next(self.at)? {
            (_, b']') if !broken => verdict(true),
            (at, b',') => self.comma_in_array(at + 1),
            (at, b'"') if broken && at > self.at && !self.context.pairs_up() => {
                self.after_string(at).and_then(|_| verdict(false))
            }
            (_, b':') => verdict(!broken),
            (_, b'{' | b'[') if broken => verdict(false),
            (_, byte) if byte.is_ascii_alphabetic() && broken => verdict(false),
            (_, byte) if is_mark(byte) => verdict(false),
            _ => None,
        }
    }

    fn comma_in_array(&self, from: usize) -> Option<Verdict> {
        match self.next(from)? {
            (at, b'"') => match self.after_string(at)? {
                b',' | b']' | b'}' | b'"' => verdict(self.balanced()),
                b':' => verdict(self.context.quotes == 0),
                _ => None,
            },
            (_, b'{' | b'[') => verdict(self.context.pairs_up()),
            _ => None,
        }
    }
}

/// Marks that mean nothing outside strings.
fn is_mark(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'?' | b'<' | b'>' | b'*' | b'%' | b'&' | b'@' | b'^' | b'|' | b'~'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::ahead::{Ahead, Gap};
    use crate::json::closers::Closers;
    use crate::json::decide::{Shape, closing};
    use proptest::prelude::*;

    const SCRAPS: &[&str] = &[
        "\"", "\"\"", "\\\"", "'", ",", ":", "{", "}", "[", "]", "(", ")", " ", "\n", "a", "key",
        "1", "null", "\\", "/", "//", "#", "!", ";", "+", "=", ".", "...", "é", "“", "`", "```",
        "\"a\":", "\"a: \"", ", \"b\"",
    ];

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: std::env::var("LAW_CASES").map_or(4000, |cases| cases.parse().unwrap_or(4000)),
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_glance_says_what_the_tokens_say(
            scraps in proptest::collection::vec(proptest::sample::select(SCRAPS), 0..9),
            role in proptest::sample::select(&[Role::Key, Role::Value, Role::Item, Role::Root][..]),
            quotes in 0_usize..4,
            flags in any::<[bool; 6]>(),
            parent in proptest::sample::select(&[None, Some(Shape::Object), Some(Shape::Array)][..]),
        ) {
            let text = scraps.concat();
            let [nested, runs_on, array_open, object_open, parens_open, last] = flags;
            let closers = Closers::default();
            let input = Input { text: &text, last, closers: &closers };
            let context = Context {
                role, quotes, nested, runs_on, parent, array_open, object_open, parens_open,
            };
            if let Some(seen) = glance(input, 0, context) {
                // A word may grow; all else must be known as early.
                let grows = text.ends_with(|c: char| c.is_alphanumeric() || ".+\\/`".contains(c));
                let input = Input { last: last || grows, ..input };
                let mut ahead = Ahead::new();
                ahead.begin_at(0, Gap::None);
                prop_assert_eq!(closing(&mut ahead, input, context), Some(seen), "{:?}", text);
            }
        }
    }
}
