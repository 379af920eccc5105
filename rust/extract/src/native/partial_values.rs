//! Arguments that arrive one value at a time, each with its JSON path (Gemini's streamed function
//! calls): put together to one object. Linear in what arrives; nothing recurses on depth.

use std::collections::HashMap;

use super::piece::PartialValue;
use crate::calls::push_string;

/// Where a value stands in its parent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Member(String),
    Item(usize),
}

#[derive(Clone, Debug)]
enum Node {
    /// Not known yet.
    Hole,
    Text(String),
    Json(String),
    Object(Vec<(String, usize)>),
    Array(Vec<usize>),
}

/// Why a value could not be put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misplaced {
    /// The path is no path, or too deep.
    Path,
    /// Something of another type stands there, or an item before it is missing.
    Conflict,
}

/// The object so far.
#[derive(Clone, Debug)]
pub(crate) struct PartialValues {
    nodes: Vec<Node>,
    children: HashMap<(usize, Step), usize>,
    max_depth: usize,
    bytes: usize,
}

impl PartialValues {
    /// An empty object.
    pub(crate) fn new(max_depth: usize) -> Self {
        Self {
            nodes: vec![Node::Object(Vec::new())],
            children: HashMap::new(),
            max_depth,
            bytes: 0,
        }
    }

    /// About how many bytes it holds.
    pub(crate) const fn len(&self) -> usize {
        self.bytes
    }

    /// Sets the value at a path, or adds to the string there.
    pub(crate) fn put(&mut self, path: &str, value: PartialValue<'_>) -> Result<(), Misplaced> {
        let steps = steps(path).ok_or(Misplaced::Path)?;
        if steps.is_empty() || steps.len() > self.max_depth {
            return Err(Misplaced::Path);
        }
        self.bytes = self.bytes.saturating_add(path.len());
        let mut node = 0;
        for step in steps {
            node = self.child(node, step)?;
        }
        let place = self.nodes.get_mut(node).ok_or(Misplaced::Conflict)?;
        match (&mut *place, value) {
            (Node::Text(text), PartialValue::Text(more)) => {
                self.bytes = self.bytes.saturating_add(more.len());
                text.push_str(more);
            }
            (Node::Hole | Node::Json(_), PartialValue::Text(text)) => {
                self.bytes = self.bytes.saturating_add(text.len());
                *place = Node::Text(text.to_owned());
            }
            (Node::Hole | Node::Json(_), PartialValue::Json(json)) => {
                self.bytes = self.bytes.saturating_add(json.len());
                *place = Node::Json(json);
            }
            _ => return Err(Misplaced::Conflict),
        }
        Ok(())
    }

    fn child(&mut self, parent: usize, step: Step) -> Result<usize, Misplaced> {
        let key = (parent, step);
        if let Some(&child) = self.children.get(&key) {
            return Ok(child);
        }
        let child = self.nodes.len();
        let node = self.nodes.get_mut(parent).ok_or(Misplaced::Conflict)?;
        match (&mut *node, &key.1) {
            (Node::Object(members), Step::Member(name)) => members.push((name.clone(), child)),
            (Node::Array(items), Step::Item(index)) if *index == items.len() => items.push(child),
            (Node::Hole, Step::Member(name)) => *node = Node::Object(vec![(name.clone(), child)]),
            (Node::Hole, Step::Item(0)) => *node = Node::Array(vec![child]),
            _ => return Err(Misplaced::Conflict),
        }
        self.nodes.push(Node::Hole);
        self.children.insert(key, child);
        Ok(child)
    }

    /// The object as compact JSON.
    pub(crate) fn to_json(&self) -> String {
        enum Task<'a> {
            Node(usize),
            Raw(&'static str),
            Key(&'a str),
        }
        let mut json = String::with_capacity(self.bytes.saturating_add(2));
        let mut tasks = vec![Task::Node(0)];
        while let Some(task) = tasks.pop() {
            let index = match task {
                Task::Raw(text) => {
                    json.push_str(text);
                    continue;
                }
                Task::Key(name) => {
                    push_string(&mut json, name);
                    json.push(':');
                    continue;
                }
                Task::Node(index) => index,
            };
            match self.nodes.get(index) {
                None | Some(Node::Hole) => json.push_str("null"),
                Some(Node::Text(text)) => push_string(&mut json, text),
                Some(Node::Json(value)) => json.push_str(value),
                Some(Node::Object(members)) => {
                    json.push('{');
                    tasks.push(Task::Raw("}"));
                    for (position, (name, child)) in members.iter().enumerate().rev() {
                        tasks.push(Task::Node(*child));
                        tasks.push(Task::Key(name));
                        if position > 0 {
                            tasks.push(Task::Raw(","));
                        }
                    }
                }
                Some(Node::Array(items)) => {
                    json.push('[');
                    tasks.push(Task::Raw("]"));
                    for (position, child) in items.iter().enumerate().rev() {
                        tasks.push(Task::Node(*child));
                        if position > 0 {
                            tasks.push(Task::Raw(","));
                        }
                    }
                }
            }
        }
        json
    }
}

/// The steps of a path of plain names and indexes: `$.a.b[0]["c d"]`, the normalised paths of
/// RFC 9535 among them.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    let mut steps = Vec::new();
    let mut bare_allowed = !path.trim_start().starts_with('$');
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = bracket(inner)?;
            steps.push(step);
            rest = after;
        } else {
            let name = match rest.strip_prefix('.') {
                Some(name) => name,
                None if bare_allowed => rest,
                None => return None,
            };
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at_checked(end)?;
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Member(name.to_owned()));
            rest = after;
        }
        bare_allowed = false;
    }
    Some(steps)
}

/// A step in brackets, whose opener is read, and what follows it.
fn bracket(inner: &str) -> Option<(Step, &str)> {
    let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let (digits, after) = inner.split_once(']')?;
        return Some((Step::Item(digits.trim().parse().ok()?), after));
    };
    let mut name = String::new();
    let mut escaped = false;
    for (offset, character) in inner.char_indices().skip(1) {
        if escaped {
            name.push(character);
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            let after = inner.get(offset + quote.len_utf8()..)?;
            return Some((Step::Member(name), after.strip_prefix(']')?));
        } else {
            name.push(character);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> PartialValue<'_> {
        PartialValue::Text(text)
    }

    #[test]
    fn values_are_put_together_in_the_order_of_their_first_parts() {
        let mut values = PartialValues::new(512);
        values.put("$.city", text("Os")).unwrap();
        values.put("$.city", text("lo")).unwrap();
        values
            .put("$.guests[0].age", PartialValue::Json("3".to_owned()))
            .unwrap();
        values
            .put("$.guests[0]['first name']", text("Ann"))
            .unwrap();
        values
            .put("$.guests[1].age", PartialValue::Json("4".to_owned()))
            .unwrap();
        assert_eq!(
            values.to_json(),
            r#"{"city":"Oslo","guests":[{"age":3,"first name":"Ann"},{"age":4}]}"#
        );
    }

    #[test]
    fn a_path_that_makes_no_sense_is_refused_and_changes_no_value() {
        let mut values = PartialValues::new(4);
        values.put("$.a", text("x")).unwrap();
        for path in [
            "",
            "$",
            "$a",
            "$..a",
            "$.b[9]",
            "$.a.b",
            "$[",
            "$['x",
            "$.a.b.c.d.e",
        ] {
            assert!(values.put(path, text("y")).is_err(), "{path}");
        }
        assert!(values.to_json().starts_with(r#"{"a":"x""#));
    }

    #[test]
    fn depth_does_not_recurse() {
        let mut values = PartialValues::new(100_000);
        let path = format!("${}", ".a".repeat(50_000));
        values.put(&path, text("x")).unwrap();
        assert!(
            values
                .to_json()
                .ends_with(&format!("\"x\"{}", "}".repeat(50_000)))
        );
    }
}
