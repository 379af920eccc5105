//! A look into compact, valid JSON without building values.
//!
//! Each step reads the bytes it passes over once; nothing recurses.

use memchr::memchr2;

/// What a JSON value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

/// A JSON value within compact JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    json: &'a str,
}

impl<'a> Value<'a> {
    /// The value that `json`, compact and valid, holds.
    pub(crate) fn new(json: &'a str) -> Self {
        Self { json }
    }

    pub(crate) fn json(self) -> &'a str {
        self.json
    }

    pub(crate) fn kind(self) -> Kind {
        match self.json.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't') => Kind::True,
            Some(b'f') => Kind::False,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// The members of an object; none of any other value.
    pub(crate) fn members(self) -> Members<'a> {
        let at = if self.kind() == Kind::Object {
            1
        } else {
            self.json.len()
        };
        Members {
            json: self.json,
            at,
        }
    }

    /// The items of an array; none of any other value.
    pub(crate) fn items(self) -> Items<'a> {
        let at = if self.kind() == Kind::Array {
            1
        } else {
            self.json.len()
        };
        Items {
            json: self.json,
            at,
        }
    }

    /// The last member of an object that has this key; keys with escapes match no name.
    pub(crate) fn get(self, key: &str) -> Option<Value<'a>> {
        self.members()
            .filter(|(name, _)| *name == key)
            .map(|(_, value)| value)
            .last()
    }

    /// The text of a string that holds any.
    pub(crate) fn text(self) -> Option<std::borrow::Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| crate::json::unescape(self.json))
    }
}

/// Walks over the members of an object: the key as it is written between its quotes, the value.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.json.as_bytes();
        let start = self.at + usize::from(bytes.get(self.at) == Some(&b','));
        if bytes.get(start) != Some(&b'"') {
            self.at = self.json.len();
            return None;
        }
        let colon = value_end(bytes, start);
        let key = self.json.get(start + 1..colon - 1)?;
        self.at = value_end(bytes, colon + 1);
        let value = self.json.get(colon + 1..self.at)?;
        Some((key, Value::new(value)))
    }
}

/// Walks over the items of an array.
#[derive(Clone, Debug)]
pub(crate) struct Items<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let bytes = self.json.as_bytes();
        let start = self.at + usize::from(bytes.get(self.at) == Some(&b','));
        if matches!(bytes.get(start), None | Some(b']')) {
            self.at = self.json.len();
            return None;
        }
        self.at = value_end(bytes, start);
        self.json.get(start..self.at).map(Value::new)
    }
}

/// One past the value that begins at `start`.
fn value_end(json: &[u8], start: usize) -> usize {
    match json.get(start) {
        Some(b'"') => string_end(json, start),
        Some(b'{' | b'[') => container_end(json, start),
        _ => {
            let rest = json.get(start..).unwrap_or_default();
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b':'));
            start + end.unwrap_or(rest.len())
        }
    }
}

fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(offset) = memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
        at += offset;
        if json.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

fn container_end(json: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at = string_end(json, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_items_come_in_order() {
        let value = Value::new(r#"{"a":1,"b\"c":[true,{"d":"}"},[]],"e":null}"#);
        let members: Vec<_> = value
            .members()
            .map(|(key, value)| (key, value.json()))
            .collect();
        let items = r#"[true,{"d":"}"},[]]"#;
        assert_eq!(members, [("a", "1"), (r#"b\"c"#, items), ("e", "null")]);
        let items: Vec<_> = Value::new(items).items().map(Value::json).collect();
        assert_eq!(items, ["true", r#"{"d":"}"}"#, "[]"]);
        assert_eq!(Value::new("{}").members().count(), 0);
        assert_eq!(Value::new("[]").items().count(), 0);
    }
}
