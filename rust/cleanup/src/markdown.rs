//! Code in Markdown: fences and inline code, as far as they decide what is text.
//!
//! The rules are those of `CommonMark`, with four liberties that model replies need: a fence may follow
//! text on its line when only a language and a line end come after it; a payload may begin on the
//! line of its fence; a token that ends the turn or its reasoning may follow the closing marks; and
//! inline code that begins the reply may hold blank lines.
//! Each function reads a stretch of text once; [`CodeSpans`] remembers where no closer was found.

use memchr::{memchr, memchr2};

use crate::{END_OF_TURN, REASONING};

/// A byte order mark, which may stand before the first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Longest run of backticks that is taken for inline code.
const LONGEST_CODE_RUN: usize = 8;
/// Longest run of marks, indentation or trailing blanks that is looked at.
const LONGEST_RUN: usize = 64;
/// Longest info string of a fence.
const LONGEST_INFO: usize = 256;

/// The opening line of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// First backtick or tilde.
    pub start: usize,
    /// Backtick or tilde.
    pub mark: u8,
    /// How many of them.
    pub length: usize,
    /// The language: first byte and one past the last.
    pub language: (usize, usize),
    /// Where the content begins.
    pub body: usize,
}

/// What a run of backticks or tildes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceMark {
    /// No fence.
    No,
    /// The text so far does not tell.
    Unknown,
    /// The opening of a fence.
    Open(Fence),
}

/// The answer to a search in text that may still grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There it is: first byte and one past the last.
    At(usize, usize),
    /// It can't come any more.
    Nowhere,
    /// Not yet; search on from this offset when more text has come.
    Unknown(usize),
}

/// The length of the run of `mark` at `from`; a longer one than [`LONGEST_RUN`] is cut there.
///
/// The cap keeps a run that grows chunk by chunk from being counted again and again.
fn run_length(text: &[u8], from: usize, mark: u8) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter()
        .take(LONGEST_RUN)
        .take_while(|byte| **byte == mark)
        .count()
}

/// Whether only blanks (at most [`LONGEST_RUN`] of them) stand before `at` on its line.
#[must_use]
pub fn at_line_start(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let blanks = before.iter().rev().take(LONGEST_RUN).take_while(blank);
    let blanks = blanks.count();
    if blanks == LONGEST_RUN {
        return false;
    }
    let before = before.get(..at - blanks).unwrap_or_default();
    before.is_empty()
        || before == BYTE_ORDER_MARK
        || before.ends_with(b"\n")
        || before.ends_with(b"\r")
}

/// Reads the run of backticks or tildes at `start` as the opening of a fence.
///
/// `payload` tells which languages hold payload: only behind these may the content begin on the
/// line of the fence. `last` says that no more text will come.
#[must_use]
pub fn fence_at(
    text: &[u8],
    start: usize,
    last: bool,
    payload: impl Fn(&[u8]) -> bool,
) -> FenceMark {
    let Some(&mark) = text.get(start) else {
        return FenceMark::No;
    };
    let length = run_length(text, start, mark);
    let info = start + length;
    if length == LONGEST_RUN {
        return FenceMark::No;
    }
    if info == text.len() && !last {
        return FenceMark::Unknown;
    }
    if length < 3 {
        return FenceMark::No;
    }
    let first_on_line = at_line_start(text, start);
    if mark == b'~' && !first_on_line {
        return FenceMark::No;
    }
    let rest = text.get(info..).unwrap_or_default();
    let line_end = memchr(b'\n', rest.get(..=LONGEST_INFO).unwrap_or(rest));
    let line = rest
        .get(..line_end.unwrap_or(rest.len()))
        .unwrap_or_default();
    let blanks = line
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    let word = line.get(blanks..).unwrap_or_default();
    let word = word
        .iter()
        .position(|b| b.is_ascii_whitespace() || matches!(b, b'{' | b'[' | b'`'))
        .map_or(word, |end| word.get(..end).unwrap_or_default());
    let language = (info + blanks, info + blanks + word.len());
    let tail = line.get(blanks + word.len()..).unwrap_or_default();
    let gap = tail.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let next = tail.get(gap);

    if first_on_line && matches!(next, Some(b'{' | b'[')) && payload(word) {
        return FenceMark::Open(Fence {
            start,
            mark,
            length,
            language,
            body: language.1 + gap,
        });
    }
    if mark == b'`' && memchr(b'`', line).is_some() {
        return FenceMark::No;
    }
    if !first_on_line && (blanks > 0 && !word.is_empty() || next.is_some()) {
        return FenceMark::No;
    }
    let body = match line_end {
        Some(end) => info + end + 1,
        None if line.len() > LONGEST_INFO => return FenceMark::No,
        None if !last => return FenceMark::Unknown,
        None if !first_on_line => return FenceMark::No,
        None => text.len(),
    };
    FenceMark::Open(Fence {
        start,
        mark,
        length,
        language,
        body,
    })
}

/// Whether the run at `start` closes `fence`, whatever else stands on its line before it.
///
/// `At` holds the run.
#[must_use]
pub fn fence_closes_at(text: &[u8], start: usize, fence: &Fence, last: bool) -> Found {
    let length = run_length(text, start, fence.mark);
    let end = start + length;
    if end == text.len() && !last && length < LONGEST_RUN {
        return Found::Unknown(start);
    }
    if length < fence.length || length == LONGEST_RUN {
        return Found::Nowhere;
    }
    let rest = text.get(end..).unwrap_or_default();
    let line = rest.get(..LONGEST_RUN).unwrap_or(rest);
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let next = line.iter().position(|byte| !blank(byte));
    match next.and_then(|at| rest.get(at..)) {
        Some([b'\n', ..]) => Found::At(start, end),
        Some(rest) => match end_of_part(rest) {
            Token::Whole => Found::At(start, end),
            Token::Begun if !last => Found::Unknown(start),
            Token::Begun | Token::No => Found::Nowhere,
        },
        None if last || line.len() == LONGEST_RUN => Found::At(start, end),
        None => Found::Unknown(start),
    }
}

/// Whether a text begins with a token.
enum Token {
    Whole,
    /// With a part of one, and nothing else follows.
    Begun,
    No,
}

/// Whether a token that ends a turn or its reasoning begins `text`: models write it right behind
/// what ends a line.
fn end_of_part(text: &[u8]) -> Token {
    let mut begun = false;
    let closers = REASONING.iter().map(|tags| tags.close);
    for token in END_OF_TURN.iter().copied().chain(closers) {
        let token = token.as_bytes();
        if text.starts_with(token) {
            return Token::Whole;
        }
        begun |= token.starts_with(text);
    }
    if begun { Token::Begun } else { Token::No }
}

/// Searches the closing line of `fence` from `from` on: a line of nothing but enough marks, or of
/// these and a token that ends the turn or its reasoning.
#[must_use]
pub fn closing_fence(text: &[u8], from: usize, fence: &Fence, last: bool) -> Found {
    let mut at = from;
    while let Some(offset) = memchr(fence.mark, text.get(at..).unwrap_or_default()) {
        let start = at + offset;
        at = start + run_length(text, start, fence.mark);
        if !at_line_start(text, start) {
            continue;
        }
        match fence_closes_at(text, start, fence, last) {
            Found::Nowhere => {}
            found => return found,
        }
    }
    if last {
        Found::Nowhere
    } else {
        Found::Unknown(text.len())
    }
}

/// How far the search for the end of inline code has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSearch {
    /// One past the opening run.
    from: usize,
    /// Length of the opening run.
    length: usize,
    /// Where the search goes on.
    at: usize,
    /// Whether the line that is being read was blank so far.
    blank: bool,
    /// Whether a blank line does not end the search.
    across_blank_lines: bool,
}

impl CodeSearch {
    /// One past the opening run.
    #[must_use]
    pub fn from(&self) -> usize {
        self.from
    }
}

/// Finds where inline code ends, and remembers where it does not, so that any number of searches
/// in one paragraph costs no more than [`LONGEST_CODE_RUN`] readings of it.
#[derive(Clone, Debug, Default)]
pub struct CodeSpans {
    /// For each length of a run: up to where no other run of that length stands.
    nowhere: [usize; LONGEST_CODE_RUN],
}

impl CodeSpans {
    /// Begins to search the end of inline code whose opening run of backticks stands at `start`.
    ///
    /// None: no inline code can open here. The run must not touch the end of text that may grow.
    #[must_use]
    pub fn open(&self, text: &[u8], start: usize, across_blank_lines: bool) -> Option<CodeSearch> {
        let length = run_length(text, start, b'`');
        let from = start + length;
        let nowhere = *self.nowhere.get(length.checked_sub(1)?)?;
        let hopeless = from < nowhere && !across_blank_lines;
        let search = CodeSearch {
            from,
            length,
            at: from,
            blank: false,
            across_blank_lines,
        };
        (!hopeless).then_some(search)
    }

    /// Goes on with `search`: `At` holds the run that closes the inline code.
    ///
    /// Without `across_blank_lines` the end of the paragraph ends the search.
    pub fn close(&mut self, search: &mut CodeSearch, text: &[u8], last: bool) -> Found {
        loop {
            if search.blank {
                let rest = text.get(search.at..).unwrap_or_default();
                let blanks = rest
                    .iter()
                    .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'));
                search.at += blanks.count();
                match text.get(search.at) {
                    None => break,
                    Some(b'\n') if !search.across_blank_lines => return self.give_up(search),
                    Some(_) => search.blank = false,
                }
            }
            let rest = text.get(search.at..).unwrap_or_default();
            let Some(offset) = memchr2(b'`', b'\n', rest) else {
                search.at = text.len();
                break;
            };
            let start = search.at + offset;
            if text.get(start) == Some(&b'\n') {
                search.at = start + 1;
                search.blank = true;
                continue;
            }
            let run = run_length(text, start, b'`');
            search.at = start;
            if start + run == text.len() && !last && run < LONGEST_RUN {
                return Found::Unknown(start);
            }
            search.at = start + run;
            if run == search.length {
                return Found::At(start, start + run);
            }
        }
        if last {
            self.give_up(search)
        } else {
            Found::Unknown(text.len())
        }
    }

    fn give_up(&mut self, search: &CodeSearch) -> Found {
        let slot = search
            .length
            .checked_sub(1)
            .and_then(|i| self.nowhere.get_mut(i));
        if let Some(nowhere) = slot {
            *nowhere = search.at.max(search.from).max(*nowhere);
        }
        Found::Nowhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(word: &[u8]) -> bool {
        word.is_empty() || word == b"json"
    }

    fn open(text: &str, start: usize) -> FenceMark {
        fence_at(text.as_bytes(), start, true, json)
    }

    fn language(text: &str, start: usize) -> Option<&str> {
        match open(text, start) {
            FenceMark::Open(fence) => text.get(fence.language.0..fence.language.1),
            _ => None,
        }
    }

    #[test]
    fn a_fence_at_the_beginning_of_a_line_opens() {
        assert_eq!(language("```json\n{}", 0), Some("json"));
        assert_eq!(language("~~~\nx", 0), Some(""));
        assert_eq!(language("  ````python title=x\n", 2), Some("python"));
    }

    #[test]
    fn a_token_that_ends_the_turn_may_follow_the_closing_marks() {
        let text = "```py\nx\n```<|im_end|>";
        let FenceMark::Open(fence) = open(text, 0) else {
            panic!("no fence");
        };
        let close = |text: &str, last| closing_fence(text.as_bytes(), fence.body, &fence, last);
        assert_eq!(close(text, true), Found::At(8, 11));
        assert_eq!(close("```py\nx\n``` </s>\n", true), Found::At(8, 11));
        for cut in 12..text.len() {
            let begun = text.get(..cut).unwrap();
            assert_eq!(close(begun, false), Found::Unknown(8), "{begun}");
            assert_eq!(close(begun, true), Found::Nowhere, "{begun}");
        }
        assert_eq!(close("```py\nx\n```<b>", true), Found::Nowhere);
    }

    #[test]
    fn a_payload_may_begin_on_the_line_of_its_fence() {
        let FenceMark::Open(fence) = open("```json {\"a\": 1}```", 0) else {
            panic!("no fence");
        };
        assert_eq!(fence.body, 8);
        assert_eq!(open("```python {x}```", 0), FenceMark::No);
    }

    #[test]
    fn backticks_within_a_line_are_a_fence_only_with_a_language_and_a_line_end() {
        assert_eq!(language("Action: ```json\n[]", 8), Some("json"));
        assert_eq!(open("Wrap it in ``` please\n", 11), FenceMark::No);
        assert_eq!(open("Wrap it in ```", 11), FenceMark::No);
    }

    #[test]
    fn a_fence_is_closed_by_a_bare_line_of_as_many_marks() {
        let text = "````\n```\nx ````\n````js\n````  \nend";
        let FenceMark::Open(fence) = open(text, 0) else {
            panic!("no fence");
        };
        assert_eq!(
            closing_fence(text.as_bytes(), fence.body, &fence, true),
            Found::At(23, 27)
        );
    }

    fn inline_code(text: &str, across_blank_lines: bool) -> Found {
        let mut spans = CodeSpans::default();
        let mut search = spans.open(text.as_bytes(), 0, across_blank_lines).unwrap();
        spans.close(&mut search, text.as_bytes(), true)
    }

    #[test]
    fn inline_code_ends_at_a_run_of_its_length_in_its_paragraph() {
        assert_eq!(inline_code("`a `` b` c", false), Found::At(7, 8));
        assert_eq!(inline_code("`a\nb`", false), Found::At(4, 5));
        assert_eq!(inline_code("`a\n \nb`", false), Found::Nowhere);
        assert_eq!(inline_code("`a\n \nb`", true), Found::At(6, 7));
    }

    #[test]
    fn the_search_for_inline_code_goes_on_where_it_stopped() {
        let text = "`a\n  \nb` c".as_bytes();
        let mut spans = CodeSpans::default();
        let mut search = spans.open(text, 0, false).unwrap();
        for end in 1..5 {
            let found = spans.close(&mut search, &text[..end], false);
            assert!(matches!(found, Found::Unknown(_)), "{end}: {found:?}");
        }
        assert_eq!(spans.close(&mut search, &text[..6], false), Found::Nowhere);
        assert_eq!(spans.open(text, 0, false), None);
    }
}
