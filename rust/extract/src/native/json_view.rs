//! A [`View`] over JSON text: the text is read once into a flat list of values, each of which
//! knows where it ends, so that looking for a member steps over the others without reading them.
//! Linear, and without recursion.

use std::borrow::Cow;

use super::view::{Key, Kind, Unwritable, View, WriteLimits, Written};

/// One value: an object's members are its keys and values in turn.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    start: usize,
    end: usize,
    /// The node after this value and all that is in it.
    next: usize,
}

/// JSON text, read: for messages that are there as text.
///
/// ```
/// use turnwarden_extract::native::{MessageStream, Tape};
/// use turnwarden_extract::{Options, Parser};
///
/// let mut stream = MessageStream::new(&Parser::new(Options::default())?);
/// let chunk = r#"{"choices": [{"index": 0, "delta": {"content": "Hi"}}]}"#;
/// let mut events = Vec::new();
/// if let Some(tape) = Tape::read(chunk) {
///     let _ = stream.feed(&tape.root(), &mut events);
/// }
/// assert_eq!(events.len(), 1);
/// # Ok::<(), turnwarden_extract::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tape<'t> {
    text: &'t str,
    nodes: Vec<Node>,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    CommaOrEnd,
}

impl<'t> Tape<'t> {
    /// Reads compact or spaced JSON; `None` when it is none. Strings and numbers are only
    /// delimited, not checked: the text comes out of the healer.
    #[must_use]
    pub fn read(text: &'t str) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut expect = Expect::Value;
        let mut at = skip_space(bytes, 0);
        loop {
            let &byte = bytes.get(at)?;
            let index = nodes.len();
            let mut node = Node {
                kind: Kind::Null,
                start: at,
                end: at + 1,
                next: index + 1,
            };
            match (expect, byte) {
                (Expect::Value | Expect::ValueOrEnd, b'{' | b'[') => {
                    (node.kind, expect) = if byte == b'{' {
                        (Kind::Object, Expect::KeyOrEnd)
                    } else {
                        (Kind::List, Expect::ValueOrEnd)
                    };
                    nodes.push(node);
                    open.push(index);
                    at = skip_space(bytes, at + 1);
                    continue;
                }
                (Expect::Key | Expect::KeyOrEnd, b'"') => {
                    node.kind = Kind::Text;
                    node.end = string_end(bytes, at)?;
                    nodes.push(node);
                    at = skip_space(bytes, node.end);
                    if bytes.get(at) != Some(&b':') {
                        return None;
                    }
                    at = skip_space(bytes, at + 1);
                    expect = Expect::Value;
                    continue;
                }
                (Expect::Value | Expect::ValueOrEnd, _) if !matches!(byte, b'}' | b']' | b',') => {
                    (node.kind, node.end) = scalar(bytes, at)?;
                    nodes.push(node);
                }
                (Expect::CommaOrEnd, b',') => {
                    let parent = nodes.get(*open.last()?)?;
                    expect = if parent.kind == Kind::Object {
                        Expect::Key
                    } else {
                        Expect::Value
                    };
                    at = skip_space(bytes, at + 1);
                    continue;
                }
                (Expect::CommaOrEnd | Expect::KeyOrEnd | Expect::ValueOrEnd, b'}' | b']') => {
                    let parent = nodes.get_mut(open.pop()?)?;
                    if (parent.kind == Kind::Object) != (byte == b'}') {
                        return None;
                    }
                    parent.end = at + 1;
                    parent.next = index;
                    node.end = at + 1;
                }
                _ => return None,
            }
            at = skip_space(bytes, node.end);
            expect = Expect::CommaOrEnd;
            if open.is_empty() {
                return (at == bytes.len()).then_some(Self { text, nodes });
            }
        }
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> JsonView<'_> {
        JsonView {
            tape: self,
            index: 0,
        }
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// One past the closing quote of the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn scalar(bytes: &[u8], at: usize) -> Option<(Kind, usize)> {
    let rest = bytes.get(at..)?;
    let kind = match rest.first()? {
        b'"' => return Some((Kind::Text, string_end(bytes, at)?)),
        b'-' | b'0'..=b'9' => Kind::Number,
        b't' | b'f' => Kind::Bool,
        b'n' => Kind::Null,
        _ => return None,
    };
    let length = rest
        .iter()
        .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
        .unwrap_or(rest.len());
    Some((kind, at + length))
}

/// One value of a [`Tape`].
#[derive(Clone, Copy, Debug)]
pub struct JsonView<'t> {
    tape: &'t Tape<'t>,
    index: usize,
}

impl<'t> JsonView<'t> {
    fn node(self) -> Option<Node> {
        self.tape.nodes.get(self.index).copied()
    }

    fn slice(self) -> &'t str {
        self.node()
            .and_then(|node| self.tape.text.get(node.start..node.end))
            .unwrap_or_default()
    }

    /// The values directly inside, keys of an object included.
    fn inner(self) -> impl Iterator<Item = Self> {
        let end = self.node().map_or(0, |node| node.next);
        let mut index = self.index + 1;
        std::iter::from_fn(move || {
            if index >= end {
                return None;
            }
            let view = Self {
                tape: self.tape,
                index,
            };
            index = view.node()?.next;
            Some(view)
        })
    }

    fn is_key(self, name: &str) -> bool {
        let literal = self.slice();
        let plain = literal
            .get(1..literal.len().saturating_sub(1))
            .unwrap_or_default();
        if plain.contains('\\') {
            return crate::json::unescape(literal) == name;
        }
        plain == name
    }
}

impl View for JsonView<'_> {
    fn kind(&self) -> Kind {
        self.node().map_or(Kind::Null, |node| node.kind)
    }

    fn get(&self, key: Key) -> Option<Self> {
        if self.kind() != Kind::Object {
            return None;
        }
        let mut found = None;
        let mut inner = self.inner();
        while let (Some(name), Some(value)) = (inner.next(), inner.next()) {
            if name.is_key(key.name()) {
                found = Some(value);
            }
        }
        found.filter(|value| value.kind() != Kind::Null)
    }

    fn text(&self) -> Option<Cow<'_, str>> {
        (self.kind() == Kind::Text).then(|| crate::json::unescape(self.slice()))
    }

    fn integer(&self) -> Option<i64> {
        (self.kind() == Kind::Number)
            .then(|| self.slice().parse().ok())
            .flatten()
    }

    fn is_true(&self) -> bool {
        self.slice() == "true"
    }

    fn items(&self) -> Vec<Self> {
        if self.kind() != Kind::List {
            return Vec::new();
        }
        self.inner().collect()
    }

    fn write(&self, limits: WriteLimits) -> Result<Written, Unwritable> {
        let json = self.slice();
        if json.len() > limits.bytes {
            return Err(Unwritable::TooLong);
        }
        Ok(Written {
            json: json.to_owned(),
            repaired: false,
        })
    }
}
