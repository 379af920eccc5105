//! Finds any of some hundred markers in a reply in one pass.
//!
//! A marker is looked for from its *anchor*, the first of its bytes that is one of `<[{:`: `memchr`
//! jumps from anchor to anchor, a trie of all markers is walked from there, and what stands before
//! the anchor is compared backwards. So plain text costs what `memchr` costs, however many formats
//! are read. Markers without an anchor byte are looked for from their first byte.

use std::collections::HashMap;

/// Bytes that a marker may be anchored at.
const ANCHORS: &[u8] = b"<[:{";
/// The one anchor outside ASCII: the first character of Kimi's reasoning tags.
pub(crate) const DIAMOND: &str = "◁";
/// Longest attribute-free end of a tag (`:suffix`, blanks) that is read.
const LONGEST_TAIL: usize = 48;

/// The number of a marker within [`Markers`].
pub(crate) type MarkerId = u16;

/// What stands at an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No marker.
    Nothing,
    /// The text so far may become one; it would begin here.
    Partial(usize),
    /// A marker.
    Hit(Hit),
}

/// A marker in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) id: MarkerId,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// How a marker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// With its last byte.
    Exact,
    /// With `>`, before which blanks or a `:suffix` may stand.
    Tag,
    /// Before a blank or `>`: the name of a tag with attributes.
    Name,
}

#[derive(Clone, Debug)]
struct Marker {
    /// The bytes before the anchor.
    prefix: Vec<u8>,
    /// The bytes from the anchor on, without the `>` of a tag.
    stem: Vec<u8>,
    tail: Tail,
    any_case: bool,
    line_start: bool,
    id: MarkerId,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Byte (in lower case) and node.
    edges: Vec<(u8, u32)>,
    /// The same by byte, where there are many; zero for none: nothing leads to the root.
    table: Option<Box<[u32; 256]>>,
    /// Markers whose stem ends here.
    ends: Vec<u32>,
}

/// Edges above which a node has a table of them.
const FEW_EDGES: usize = 4;

impl Node {
    fn add(&mut self, byte: u8, child: u32) {
        self.edges.push((byte, child));
        if self.edges.len() > FEW_EDGES {
            let table = self.table.get_or_insert_with(|| Box::new([0; 256]));
            for (byte, child) in &self.edges {
                if let Some(entry) = table.get_mut(usize::from(*byte)) {
                    *entry = *child;
                }
            }
        }
    }

    fn child(&self, byte: u8) -> Option<usize> {
        if let Some(table) = &self.table {
            let child = table.get(usize::from(byte)).copied();
            return child.filter(|child| *child > 0).map(|child| child as usize);
        }
        let edge = self.edges.iter().find(|edge| edge.0 == byte);
        edge.map(|edge| edge.1 as usize)
    }
}

/// What must stand before an anchor byte for any marker to stand there.
#[derive(Clone, Debug)]
struct Before {
    anchor: u8,
    /// Whether some marker begins with the anchor.
    anything: bool,
    /// The last bytes of what stands before it in the others.
    bytes: Box<[bool; 256]>,
}

/// A set of markers, compiled.
#[derive(Clone, Debug)]
pub(crate) struct Markers {
    all: Vec<Marker>,
    nodes: Vec<Node>,
    /// Markers with bytes before their anchor.
    prefixed: Vec<u32>,
    /// Most bytes that stand before an anchor.
    longest_prefix: usize,
    /// Markers without an anchor.
    unanchored: Vec<(Vec<u8>, MarkerId)>,
    /// The bytes that those begin with.
    unanchored_begins: Box<[bool; 256]>,
    /// What must stand before each of the anchor bytes.
    before: Vec<Before>,
    /// All spellings, and their markers.
    spelled: HashMap<String, MarkerId>,
    count: usize,
}

impl Markers {
    pub(crate) fn new() -> Self {
        Self {
            all: Vec::new(),
            nodes: vec![Node::default()],
            prefixed: Vec::new(),
            longest_prefix: 0,
            unanchored: Vec::new(),
            unanchored_begins: Box::new([false; 256]),
            before: Vec::new(),
            spelled: HashMap::new(),
            count: 0,
        }
    }

    /// Adds a marker, with its spellings, and returns its number; the same one for the same text.
    ///
    /// `<name>` is a tag: read in any case, with blanks or a suffix before its `>`. `<name` is the
    /// beginning of a tag with attributes. `｜` and `▁` also stand for `|` and for `_`, a space or
    /// `\_`. A text that begins with a newline is a marker at the beginning of a line.
    pub(crate) fn add(&mut self, text: &str) -> MarkerId {
        // Markers that share a spelling are one marker: nothing could tell them apart.
        let spellings = spellings(text);
        let shared = spellings
            .iter()
            .find_map(|spelling| self.spelled.get(spelling).copied());
        let id = shared.unwrap_or(MarkerId::try_from(self.count).unwrap_or(MarkerId::MAX));
        self.count += usize::from(shared.is_none());
        for spelling in spellings {
            if !self.spelled.contains_key(&spelling) {
                self.insert(&spelling, id);
                self.spelled.insert(spelling, id);
            }
        }
        id
    }

    /// Adds the bytes that the spellings of a marker are anchored at.
    pub(crate) fn anchors_of(&self, id: MarkerId, anchors: &mut Vec<u8>) {
        for marker in self.all.iter().filter(|marker| marker.id == id) {
            if let Some(byte) = marker.stem.first().filter(|byte| !anchors.contains(byte)) {
                anchors.push(*byte);
            }
        }
    }

    /// How many markers there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn insert(&mut self, text: &str, id: MarkerId) {
        let (line_start, text) = match text.strip_prefix('\n') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let bytes = text.as_bytes();
        let anchor = bytes.iter().position(|byte| ANCHORS.contains(byte));
        let Some(anchor) = anchor.or_else(|| text.starts_with(DIAMOND).then_some(0)) else {
            let first = bytes.first().map(|byte| usize::from(*byte));
            if let Some(begins) = first.and_then(|first| self.unanchored_begins.get_mut(first)) {
                *begins = true;
            }
            self.unanchored.push((bytes.to_vec(), id));
            return;
        };
        let (prefix, rest) = bytes.split_at(anchor);
        let tail = tail_of(rest);
        let stem = if tail == Tail::Tag {
            rest.get(..rest.len() - 1).unwrap_or(rest)
        } else {
            rest
        };
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        if let Some(first) = stem.first() {
            self.note_before(*first, prefix);
        }
        if !prefix.is_empty() {
            self.prefixed.push(number);
            self.longest_prefix = self.longest_prefix.max(prefix.len());
        }
        let mut node = 0_usize;
        for byte in stem {
            node = self.child_or_new(node, byte.to_ascii_lowercase());
        }
        if let Some(node) = self.nodes.get_mut(node) {
            node.ends.push(number);
        }
        self.all.push(Marker {
            prefix: prefix.to_vec(),
            stem: stem.to_vec(),
            tail,
            any_case: tail != Tail::Exact || is_named_tag(rest),
            line_start,
            id,
        });
    }

    fn child(&self, node: usize, byte: u8) -> Option<usize> {
        self.nodes.get(node)?.child(byte)
    }

    /// Notes what stands before the anchor of a marker.
    fn note_before(&mut self, anchor: u8, prefix: &[u8]) {
        let known = self.before.iter().position(|known| known.anchor == anchor);
        let index = known.unwrap_or(self.before.len());
        if known.is_none() {
            self.before.push(Before {
                anchor,
                anything: false,
                bytes: Box::new([false; 256]),
            });
        }
        let Some(before) = self.before.get_mut(index) else {
            return;
        };
        match prefix.last() {
            None => before.anything = true,
            Some(last) => {
                if let Some(byte) = before.bytes.get_mut(usize::from(*last)) {
                    *byte = true;
                }
            }
        }
    }

    /// Whether any marker may stand at an anchor, by the byte before it.
    fn may_stand(&self, text: &[u8], anchor: usize) -> bool {
        let Some(byte) = text.get(anchor) else {
            return true;
        };
        let Some(before) = self.before.iter().find(|before| before.anchor == *byte) else {
            return false;
        };
        let last = anchor.checked_sub(1).and_then(|at| text.get(at));
        before.anything
            || last.is_some_and(|last| before.bytes.get(usize::from(*last)) == Some(&true))
    }

    fn child_or_new(&mut self, node: usize, byte: u8) -> usize {
        if let Some(child) = self.child(node, byte) {
            return child;
        }
        let child = self.nodes.len();
        self.nodes.push(Node::default());
        if let Some(node) = self.nodes.get_mut(node) {
            node.add(byte, u32::try_from(child).unwrap_or(u32::MAX));
        }
        child
    }

    /// What stands at the anchor byte at `anchor`; of several markers, the longest that is wanted.
    pub(crate) fn look(
        &self,
        text: &[u8],
        anchor: usize,
        last: bool,
        wanted: impl Fn(MarkerId) -> bool,
    ) -> Look {
        if !self.may_stand(text, anchor) {
            return Look::Nothing;
        }
        let mut node = 0_usize;
        let mut at = anchor;
        let mut found = Look::Nothing;
        loop {
            let Some(entry) = self.nodes.get(node) else {
                return found;
            };
            for number in &entry.ends {
                let Some(marker) = self.all.get(*number as usize) else {
                    continue;
                };
                match marker.ends_at(text, anchor, at, last) {
                    Look::Hit(hit) if wanted(hit.id) => found = Look::Hit(hit),
                    Look::Partial(start) if wanted(marker.id) => found = Look::Partial(start),
                    _ => {}
                }
            }
            let Some(byte) = text.get(at) else {
                let open = !last && !entry.edges.is_empty();
                return if open {
                    self.partial(text, anchor, node, found, &wanted)
                } else {
                    found
                };
            };
            match self.child(node, byte.to_ascii_lowercase()) {
                Some(child) => node = child,
                None => return found,
            }
            at += 1;
        }
    }

    /// The wanted marker that begins exactly at `start`, whose anchor may stand some bytes later.
    pub(crate) fn look_from(
        &self,
        text: &[u8],
        start: usize,
        last: bool,
        wanted: impl Fn(MarkerId) -> bool,
    ) -> Look {
        let rest = text.get(start..).unwrap_or_default();
        let plain = self.unanchored_at(text, start, last, &wanted);
        let offset = rest
            .iter()
            .take(self.longest_prefix + 1)
            .position(|byte| is_anchor(*byte));
        let look = match offset {
            Some(offset) => self.look(text, start + offset, last, wanted),
            None if !last && rest.len() <= self.longest_prefix => {
                let begun = self.prefixed.iter().any(|number| {
                    let marker = self.all.get(*number as usize);
                    marker.is_some_and(|m| wanted(m.id) && m.prefix.starts_with(rest))
                });
                if begun {
                    Look::Partial(start)
                } else {
                    Look::Nothing
                }
            }
            None => Look::Nothing,
        };
        let look = match look {
            Look::Hit(Hit { start: at, .. }) | Look::Partial(at) if at != start => Look::Nothing,
            look => look,
        };
        match (plain, look) {
            (Look::Nothing, look) => look,
            (plain, Look::Nothing) => plain,
            (Look::Hit(plain), Look::Hit(hit)) if plain.end > hit.end => Look::Hit(plain),
            (Look::Hit(_), look) => look,
            (plain, _) => plain,
        }
    }

    /// The longest wanted marker without an anchor that begins at `start`; partial when it may
    /// still become one, or a longer one.
    pub(crate) fn unanchored_at(
        &self,
        text: &[u8],
        start: usize,
        last: bool,
        wanted: &impl Fn(MarkerId) -> bool,
    ) -> Look {
        let rest = text.get(start..).unwrap_or_default();
        let mut longest = Look::Nothing;
        let mut end = start;
        for (literal, id) in self.unanchored.iter().filter(|(_, id)| wanted(*id)) {
            if rest.starts_with(literal) {
                if start + literal.len() > end {
                    end = start + literal.len();
                    longest = Look::Hit(Hit {
                        id: *id,
                        start,
                        end,
                    });
                }
            } else if !last && !rest.is_empty() && literal.starts_with(rest) {
                return Look::Partial(start);
            }
        }
        longest
    }

    /// The text ended within the trie: where would the longest marker below `node` begin?
    fn partial(
        &self,
        text: &[u8],
        anchor: usize,
        node: usize,
        found: Look,
        wanted: &impl Fn(MarkerId) -> bool,
    ) -> Look {
        let before = text.get(..anchor).unwrap_or_default();
        let mut stack = vec![node];
        let mut earliest = match found {
            Look::Hit(Hit { start, .. }) | Look::Partial(start) => Some(start),
            Look::Nothing => None,
        };
        let mut goes_on = false;
        while let Some(node) = stack.pop() {
            let Some(entry) = self.nodes.get(node) else {
                continue;
            };
            stack.extend(entry.edges.iter().map(|edge| edge.1 as usize));
            for number in &entry.ends {
                let Some(marker) = self.all.get(*number as usize) else {
                    continue;
                };
                if wanted(marker.id) && marker.fits_before(before) {
                    let start = anchor - marker.prefix.len();
                    earliest = Some(earliest.map_or(start, |known: usize| known.min(start)));
                    goes_on = true;
                }
            }
        }
        if goes_on {
            earliest.map_or(found, Look::Partial)
        } else {
            found
        }
    }

    /// Where a marker may begin whose anchor has not come yet, at the end of `text`.
    pub(crate) fn unfinished(&self, text: &[u8]) -> Option<usize> {
        let prefixed = self.prefixed.iter().filter_map(|number| {
            let marker = self.all.get(*number as usize)?;
            overlap(text, &marker.prefix)
        });
        let unanchored = self.unanchored.iter().filter_map(|(literal, _)| {
            let all_but_last = literal.split_last().map_or(&[][..], |(_, rest)| rest);
            overlap(text, all_but_last)
        });
        prefixed.chain(unanchored).min()
    }

    /// The next marker without an anchor byte in `text` from `from` on: linear in the way there.
    pub(crate) fn next_unanchored(&self, text: &[u8], from: usize) -> Option<Hit> {
        let rest = text.get(from..)?;
        let begins = rest
            .iter()
            .enumerate()
            .filter(|(_, byte)| self.begins_unanchored(**byte));
        let mut hits = begins.filter_map(|(offset, _)| {
            match self.unanchored_at(text, from + offset, true, &|_| true) {
                Look::Hit(hit) => Some(hit),
                _ => None,
            }
        });
        hits.next()
    }

    /// Whether a marker without an anchor begins with this byte.
    pub(crate) fn begins_unanchored(&self, byte: u8) -> bool {
        self.unanchored_begins.get(usize::from(byte)) == Some(&true)
    }

    /// Whether any marker has no anchor byte.
    pub(crate) fn has_unanchored(&self) -> bool {
        !self.unanchored.is_empty()
    }
}

impl Marker {
    /// Whether this marker, whose stem lies in `text` from `anchor` to `at`, really stands there.
    fn ends_at(&self, text: &[u8], anchor: usize, at: usize, last: bool) -> Look {
        let stem = text.get(anchor..at).unwrap_or_default();
        let before = text.get(..anchor).unwrap_or_default();
        if !self.any_case && stem != self.stem.as_slice() || !self.fits_before(before) {
            return Look::Nothing;
        }
        let start = anchor - self.prefix.len();
        match tail_end(self.tail, text, at, last) {
            TailEnd::At(end) => Look::Hit(Hit {
                id: self.id,
                start,
                end,
            }),
            TailEnd::Unknown => Look::Partial(start),
            TailEnd::No => Look::Nothing,
        }
    }

    fn fits_before(&self, before: &[u8]) -> bool {
        let Some(rest) = before.strip_suffix(self.prefix.as_slice()) else {
            return false;
        };
        !self.line_start || turnwarden_cleanup::at_line_start(rest, rest.len())
    }
}

fn is_anchor(byte: u8) -> bool {
    ANCHORS.contains(&byte) || DIAMOND.as_bytes().first() == Some(&byte)
}

enum TailEnd {
    At(usize),
    Unknown,
    No,
}

fn tail_end(tail: Tail, text: &[u8], at: usize, last: bool) -> TailEnd {
    let rest = text.get(at..).unwrap_or_default();
    let unknown = if last { TailEnd::No } else { TailEnd::Unknown };
    match tail {
        Tail::Exact => TailEnd::At(at),
        Tail::Name => match rest.first() {
            Some(byte) if byte.is_ascii_whitespace() || *byte == b'>' => TailEnd::At(at),
            Some(_) => TailEnd::No,
            None => unknown,
        },
        Tail::Tag => {
            let window = rest.get(..LONGEST_TAIL).unwrap_or(rest);
            let suffix = window.first() == Some(&b':');
            let end = window.iter().position(|byte| match byte {
                b'_' | b'-' | b'.' | b':' => !suffix,
                b' ' | b'\t' | b'\r' | b'\n' => false,
                byte => !(suffix && byte.is_ascii_alphanumeric()),
            });
            match end {
                Some(end) if window.get(end) == Some(&b'>') => TailEnd::At(at + end + 1),
                Some(_) => TailEnd::No,
                None if window.len() == LONGEST_TAIL => TailEnd::No,
                None => unknown,
            }
        }
    }
}

/// Tags are `<`, letters, digits and `_:-/.`, and `>`; special tokens such as `<|name|>` are not.
fn tail_of(stem: &[u8]) -> Tail {
    let Some(name) = stem.strip_prefix(b"<") else {
        return Tail::Exact;
    };
    let (name, tail) = match name.strip_suffix(b">") {
        Some(name) => (name, Tail::Tag),
        None => (name, Tail::Name),
    };
    let letters = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:-/.".contains(byte);
    // What ends with a mark is the beginning of a tag that holds a name: `<call:NAME>`.
    let whole = tail == Tail::Tag || name.last().is_some_and(u8::is_ascii_alphanumeric);
    if whole && !name.is_empty() && name.iter().all(letters) {
        tail
    } else {
        Tail::Exact
    }
}

/// `<function=` is the beginning of a tag, too.
fn is_named_tag(stem: &[u8]) -> bool {
    stem.last() == Some(&b'=') && stem.get(1).is_some_and(u8::is_ascii_alphabetic)
}

/// The spellings of a marker: full-width bars and lower blocks get lost on the way.
fn spellings(text: &str) -> Vec<String> {
    let bars: &[&str] = if text.contains('｜') {
        &["｜", "|"]
    } else {
        &["｜"]
    };
    let blocks: &[&str] = if text.contains('▁') {
        &["▁", "_", " ", "\\_"]
    } else {
        &["▁"]
    };
    let mut all = Vec::new();
    for bar in bars {
        for block in blocks {
            all.push(text.replace('｜', bar).replace('▁', block));
        }
    }
    all
}

/// Where the longest end of `text` begins that is a beginning of `literal`.
fn overlap(text: &[u8], literal: &[u8]) -> Option<usize> {
    let longest = literal.len().min(text.len());
    (1..=longest)
        .rev()
        .find(|length| text.ends_with(literal.get(..*length).unwrap_or_default()))
        .map(|length| text.len() - length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers(texts: &[&str]) -> Markers {
        let mut markers = Markers::new();
        for text in texts {
            markers.add(text);
        }
        markers
    }

    fn look(markers: &Markers, text: &str, anchor: usize) -> Look {
        markers.look(text.as_bytes(), anchor, false, |_| true)
    }

    fn hit(id: MarkerId, start: usize, end: usize) -> Look {
        Look::Hit(Hit { id, start, end })
    }

    #[test]
    fn the_longest_marker_wins() {
        let markers = markers(&["<tool_call>", "<tool_calls>"]);
        assert_eq!(look(&markers, "<tool_calls>x", 0), hit(1, 0, 12));
        assert_eq!(look(&markers, "<TOOL_CALL>x", 0), hit(0, 0, 11));
    }

    #[test]
    fn tags_may_hold_blanks_and_a_suffix_before_their_end() {
        let markers = markers(&["<tool_call>", "<invoke"]);
        assert_eq!(look(&markers, "<tool_call >", 0), hit(0, 0, 12));
        assert_eq!(look(&markers, "<tool_call:6124c78e>", 0), hit(0, 0, 20));
        assert_eq!(look(&markers, "<invoke name=", 0), hit(1, 0, 7));
        assert_eq!(look(&markers, "<invoked", 0), Look::Nothing);
    }

    #[test]
    fn text_that_may_become_a_marker_is_partial() {
        let markers = markers(&["<tool_call>", "functools["]);
        for end in 1..11 {
            assert_eq!(
                look(&markers, &"<tool_call>"[..end], 0),
                Look::Partial(0),
                "{end}"
            );
        }
        assert_eq!(markers.unfinished(b"see functoo"), Some(4));
        assert_eq!(markers.unfinished(b"see functools of"), Some(15));
        assert_eq!(look(&markers, "a functools[", 11), hit(1, 2, 12));
    }

    #[test]
    fn full_width_bars_and_blocks_have_other_spellings() {
        let markers = markers(&["<｜tool▁sep｜>"]);
        for text in [
            "<｜tool▁sep｜>",
            "<|tool_sep|>",
            "<｜tool sep｜>",
            "<|tool\\_sep|>",
        ] {
            assert_eq!(look(&markers, text, 0), hit(0, 0, text.len()), "{text}");
        }
    }

    #[test]
    fn special_tokens_are_read_in_their_own_case_only() {
        let markers = markers(&["[TOOL_CALLS]"]);
        assert_eq!(look(&markers, "[tool_calls]", 0), Look::Nothing);
    }

    #[test]
    fn markers_at_line_starts_stand_nowhere_else() {
        let markers = markers(&["\nAction:"]);
        assert_eq!(look(&markers, "x\n Action: y", 9), hit(0, 3, 10));
        assert_eq!(look(&markers, "x Action: y", 8), Look::Nothing);
    }
}
