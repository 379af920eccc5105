//! Response templates, as tokenizer configs of Hugging Face carry them, read as formats.
//!
//! A template says with literals and regular expressions where reasoning, text and calls stand.
//! What our grammars read is mapped to a declaration; what they do not is refused with the field
//! and the key, never read as something else. What a template says of the prompt (`start_anchor`),
//! of the message around the fields (`defaults`) and of missing fields (`optional`) has no bearing
//! on a reply.

mod pattern;

use serde_json::{Map, Value};

use crate::ConfigError;
use crate::formats::{
    ArgumentTag, Body, BracedCalls, ChannelCalls, Format, JsonCalls, KeyValueCalls, NameAt,
    NamedCalls, Part, Syntax, Tag, TaggedCalls,
};
use pattern::{Pattern, Piece};

/// Keys of fields that hold reasoning.
const REASONING: &[&str] = &["thinking", "reasoning_content", "reasoning"];
/// Every key that a field may have.
const FIELD_KEYS: &[&str] = &[
    "open",
    "open_pattern",
    "close",
    "close_pattern",
    "repeats",
    "optional",
    "content",
    "content_args",
    "transform",
    "transform_each",
    "join",
];
const TEMPLATE_KEYS: &[&str] = &[
    "version",
    "defaults",
    "start_anchor",
    "start_anchor_pattern",
    "fields",
];

impl Format {
    /// Reads a response template: the template itself, or a tokenizer config that holds one, as
    /// JSON.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadFormat`] that names the field and the key when a template says what no
    /// declaration can.
    ///
    /// # Examples
    ///
    /// ```
    /// use turnwarden_extract::Format;
    ///
    /// let format = Format::from_response_template(
    ///     r#"{"fields": {"tool_calls": {"open": "<call>", "close": "</call>", "repeats": true,
    ///         "content": "json", "transform": {"type": "function", "function": "{content}"}}}}"#,
    ///     "new_model",
    /// )?;
    /// assert_eq!(format.label, "new_model");
    /// # Ok::<(), turnwarden_extract::ConfigError>(())
    /// ```
    pub fn from_response_template(json: &str, label: &str) -> Result<Self, ConfigError> {
        let problem = |problem: String| ConfigError::BadFormat {
            label: label.to_owned(),
            problem,
        };
        let value: Value = serde_json::from_str(json)
            .map_err(|error| problem(format!("the response template is no JSON: {error}")))?;
        let format = template(&value, label).map_err(problem)?;
        format.check()?;
        Ok(format)
    }
}

/// What goes wrong, as a sentence that begins with the field and the key.
type Problem = String;

fn template(value: &Value, label: &str) -> Result<Format, Problem> {
    let config = value
        .as_object()
        .ok_or("a response template is an object with `fields`")?;
    let spec = match config.get("response_template") {
        Some(Value::String(text)) => &serde_json::from_str::<Value>(text)
            .map_err(|error| format!("response_template: no JSON: {error}"))?,
        Some(spec) => spec,
        None => value,
    };
    let spec = spec
        .as_object()
        .ok_or("response_template: expected an object with `fields`")?;
    let Some(fields) = spec.get("fields").and_then(Value::as_object) else {
        let older = config.contains_key("response_schema");
        return Err(if older {
            "it carries only a `response_schema`, the older kind made of regular expressions; \
             declare the format with Format(...)"
        } else {
            "no `fields`: neither a response template nor a tokenizer config that holds one"
        }
        .to_owned());
    };
    known_keys("", spec, TEMPLATE_KEYS)?;
    if let Some(version) = spec.get("version").filter(|v| v.as_i64() != Some(1)) {
        return Err(format!("version: only 1 is known, not {version}"));
    }
    Builder::new(label).read(fields)
}

fn known_keys(field: &str, map: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!(
            "{}: unknown key; known are {}",
            path(field, key),
            known.join(", ")
        )),
        None => Ok(()),
    }
}

fn path(field: &str, key: &str) -> String {
    if field.is_empty() {
        key.to_owned()
    } else {
        format!("fields.{field}.{key}")
    }
}

const NOT_LITERAL: &str = "only literal text, alternatives of it and white space can be read here; \
                           declare the format with Format(...)";

/// What closes a call and, in the same pattern, the section around it.
struct Closer {
    call: String,
    section: Option<String>,
}

/// A field of a template.
struct Field<'a> {
    name: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Field<'a> {
    fn refuse<T>(&self, key: &str, problem: &str) -> Result<T, Problem> {
        Err(format!("{}: {problem}", path(self.name, key)))
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => self.refuse(key, "expected a string"),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, Problem> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => self.refuse(key, "expected true or false"),
        }
    }

    /// The patterns of one side, `open` or `close`; none when the field does not bound it.
    fn side(&self, side: &str) -> Result<Vec<Pattern>, Problem> {
        let key = format!("{side}_pattern");
        let literal = self.map.get(side).filter(|value| !value.is_null());
        let pattern = self.text(&key)?;
        match (literal, pattern) {
            (Some(_), Some(_)) => self.refuse(&key, &format!("give it or `{side}`, not both")),
            (Some(Value::String(text)), None) => Ok(vec![Pattern::literal(text)]),
            (Some(Value::Array(texts)), None) => texts
                .iter()
                .map(|text| match text.as_str() {
                    Some(text) => Ok(Pattern::literal(text)),
                    None => self.refuse(side, "expected a string or a list of strings"),
                })
                .collect(),
            (Some(_), None) => self.refuse(side, "expected a string or a list of strings"),
            (None, Some(pattern)) => {
                pattern::read(pattern).or_else(|problem| self.refuse(&key, &problem))
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The side as literal markers, with whether it may match nothing at all.
    fn literals(&self, side: &str) -> Result<(Vec<String>, bool), Problem> {
        let mut empty = false;
        let mut texts = Vec::new();
        for pattern in self.side(side)? {
            match pattern.as_literal() {
                Some(text) if text.trim().is_empty() => empty = true,
                Some(text) => texts.push(text.trim().to_owned()),
                None => return self.refuse(&format!("{side}_pattern"), NOT_LITERAL),
            }
        }
        Ok((texts, empty))
    }

    /// What closes a call.
    fn closers(&self) -> Result<Vec<Closer>, Problem> {
        let mut closers = Vec::new();
        let tags = self.content()? == "xml-inline";
        for pattern in self.side("close")? {
            let Some(mut markers) = pattern.markers(tags).map(Vec::into_iter) else {
                return self.refuse("close_pattern", NOT_LITERAL);
            };
            let (call, section) = (markers.next(), markers.next());
            if markers.next().is_some() {
                return self.refuse(
                    "close_pattern",
                    "one marker that closes the call and one that closes the section can be read, \
                     not more",
                );
            }
            if let Some(call) = call {
                closers.push(Closer { call, section });
            }
        }
        Ok(closers)
    }

    /// The content type, with what it is called when there is none.
    fn content(&self) -> Result<&'a str, Problem> {
        Ok(self.text("content")?.unwrap_or("text"))
    }

    fn arguments(&self, known: &[&str]) -> Result<Map<String, Value>, Problem> {
        match self.map.get("content_args") {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(map)) => {
                if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
                    return self.refuse(
                        &format!("content_args.{key}"),
                        "this argument has no meaning here",
                    );
                }
                Ok(map.clone())
            }
            Some(_) => self.refuse("content_args", "expected an object"),
        }
    }
}

/// Makes one format of the fields of a template.
struct Builder {
    format: Format,
    /// Whether some field speaks in messages on channels.
    channels: bool,
    calls: bool,
}

impl Builder {
    fn new(label: &str) -> Self {
        Self {
            format: Format::new(label, &[], ""),
            channels: false,
            calls: false,
        }
    }

    fn read(mut self, fields: &Map<String, Value>) -> Result<Format, Problem> {
        for (name, value) in fields {
            let Some(map) = value.as_object() else {
                return Err(format!("fields.{name}: expected an object"));
            };
            known_keys(name, map, FIELD_KEYS)?;
            let field = Field { name, map };
            field.flag("optional")?;
            match name.as_str() {
                "content" => self.answer(&field)?,
                "tool_calls" => self.calls(&field)?,
                name if REASONING.contains(&name) => self.reasoning(&field)?,
                _ => {
                    return Err(format!(
                        "fields.{name}: only content, tool_calls and reasoning (thinking, \
                         reasoning_content) are read out of replies; take the field out"
                    ));
                }
            }
        }
        if !self.calls {
            return Err(
                "fields.tool_calls: the template has no such field, so it says nothing of calls; \
                 reasoning and text are read without a format"
                    .to_owned(),
            );
        }
        let harmony = matches!(
            self.format.syntaxes.first(),
            Some(Syntax {
                body: Body::Channels(_),
                ..
            })
        );
        if self.channels && !harmony {
            return Err(
                "fields.tool_calls.open_pattern: text stands in messages on channels, calls do \
                 not; declare the format with Format(...)"
                    .to_owned(),
            );
        }
        Ok(self.format)
    }

    fn plain_text(field: &Field<'_>) -> Result<(), Problem> {
        if field.content()? != "text" {
            return field.refuse("content", "reasoning and the answer are text");
        }
        field.arguments(&["strip"])?;
        if field.map.contains_key("transform") {
            return field.refuse("transform", "text is given as it is");
        }
        match field.text("join")? {
            Some(join) if !join.trim().is_empty() => {
                field.refuse("join", "blocks are joined by a line end")
            }
            _ => Ok(()),
        }
    }

    fn reasoning(&mut self, field: &Field<'_>) -> Result<(), Problem> {
        Self::plain_text(field)?;
        let (open, at_once) = field.literals("open")?;
        let (close, _) = field.literals("close")?;
        if open.iter().any(|open| open.starts_with("<|channel|>")) {
            if open != ["<|channel|>analysis<|message|>"] {
                return field.refuse("open", "only the analysis channel holds reasoning");
            }
            self.channels = true;
            return Ok(());
        }
        if close.is_empty() {
            return field.refuse("close", "reasoning needs what closes it");
        }
        if open.is_empty() && !at_once {
            return field.refuse("open", "reasoning needs what opens it");
        }
        self.format.reasoning_open |= at_once;
        let openers = if open.is_empty() {
            // The template of the prompt opens the block: nothing in a reply does. The closing tag
            // tells what the opening one would be.
            let named: Vec<String> = close
                .iter()
                .map(|close| close.replacen('/', "", 1))
                .collect();
            if named == close {
                return field.refuse("open_pattern", "name the marker that opens reasoning, too");
            }
            named
        } else {
            open
        };
        for open in &openers {
            for close in &close {
                self.format.reasoning.push((open.clone(), close.clone()));
            }
        }
        Ok(())
    }

    fn answer(&mut self, field: &Field<'_>) -> Result<(), Problem> {
        Self::plain_text(field)?;
        let (open, at_once) = field.literals("open")?;
        let (close, _) = field.literals("close")?;
        if open.iter().any(|open| open.starts_with("<|channel|>")) {
            if open.iter().any(|o| {
                o != "<|channel|>final<|message|>" && o != "<|channel|>commentary<|message|>"
            }) {
                return field.refuse("open", "only the channels final and commentary hold text");
            }
            self.channels = true;
            return Ok(());
        }
        if open.is_empty() || at_once {
            self.format.end_of_turn.extend(close);
            return Ok(());
        }
        if close.is_empty() {
            return field.refuse("close", "a marker before the answer needs one behind it");
        }
        for open in &open {
            for close in &close {
                self.format.wrappers.push((open.clone(), close.clone()));
            }
        }
        Ok(())
    }

    fn calls(&mut self, field: &Field<'_>) -> Result<(), Problem> {
        self.calls = true;
        if field.map.contains_key("join") {
            return field.refuse("join", "calls are not joined");
        }
        field.flag("repeats")?;
        let open = field.side("open")?;
        let mut close = field.closers()?;
        // What opens the next call, or ends the turn, does not belong to this one.
        close.retain(|Closer { call, .. }| {
            let opens = |pattern: &Pattern| pattern.begins_with(call);
            !turnwarden_cleanup::END_OF_TURN.contains(&call.as_str()) && !open.iter().any(opens)
        });
        if open.is_empty() {
            return field.refuse("open", "calls need what opens them");
        }
        for pattern in &open {
            let syntax = call_syntax(field, pattern, &close)?;
            self.format.syntaxes.push(syntax);
        }
        Ok(())
    }
}

/// One way of writing calls.
fn call_syntax(field: &Field<'_>, open: &Pattern, close: &[Closer]) -> Result<Syntax, Problem> {
    let shape = Shape::read(field)?;
    let closers: Vec<&str> = close.iter().map(|closer| closer.call.as_str()).collect();
    let of_sections = close.iter().filter_map(|closer| closer.section.as_deref());
    let sections: Vec<&str> = of_sections.collect();
    if field.content()? != "xml-inline" && !sections.is_empty() {
        return field.refuse("close_pattern", NOT_LITERAL);
    }
    let named = open.groups().any(|name| name == "name");
    if let Some(group) = open.groups().find(|name| *name != "name" && *name != "id") {
        return field.refuse(
            "open_pattern",
            &format!("only the groups `name` and `id` are read, not `{group}`"),
        );
    }
    match (field.content()?, named) {
        ("json", false) => {
            field.arguments(&["unquoted_keys", "allow_non_json"])?;
            let Some(marker) = open.as_literal() else {
                return field.refuse("open_pattern", "without a group `name` it must be literal");
            };
            let calls = shape.json(field)?;
            Ok(Syntax::between(
                &[marker.trim()],
                &closers,
                Body::Json(calls),
            ))
        }
        ("json", true) => {
            shape.whole_content(field)?;
            named_calls(field, open, &closers)
        }
        ("xml-inline", true) => {
            shape.whole_content(field)?;
            element_calls(field, open, &closers, &sections)
        }
        ("xml-inline", false) => {
            field.refuse("open_pattern", "a group `name` must give the tool's name")
        }
        ("kv-lines", _) => field.refuse(
            "content",
            "no grammar reads calls as lines of `key: value`; declare the format with Format(...)",
        ),
        _ => field.refuse("content", "calls are json or xml-inline"),
    }
}

/// Where `transform` says that name, arguments and id are.
struct Shape {
    /// The placeholders, without braces; none without a transform.
    name: Option<String>,
    arguments: Option<String>,
    id: Option<String>,
    /// The whole content is the function.
    function: bool,
}

impl Shape {
    fn read(field: &Field<'_>) -> Result<Self, Problem> {
        let mut shape = Self {
            name: None,
            arguments: None,
            id: None,
            function: true,
        };
        field.flag("transform_each")?;
        let transform = match field.map.get("transform") {
            None | Some(Value::Null) => return Ok(shape),
            Some(Value::Array(items)) if items.len() == 1 => items.first(),
            Some(transform) => Some(transform),
        };
        let Some(Value::Object(call)) = transform else {
            return field.refuse("transform", "expected an object that is one call");
        };
        let function = match call.get("function") {
            Some(Value::String(text)) if text == "{content}" => None,
            Some(Value::Object(function)) => Some(function),
            Some(_) => {
                return field.refuse("transform.function", "expected \"{content}\" or an object");
            }
            None => Some(call),
        };
        let placeholder = |key: &str, value: &Value| match value
            .as_str()
            .and_then(|text| text.strip_prefix('{')?.strip_suffix('}'))
        {
            Some(inner) => Ok(inner.to_owned()),
            None => field.refuse(
                &format!("transform.{key}"),
                "expected one placeholder, such as \"{content}\"",
            ),
        };
        for map in [Some(call), function].into_iter().flatten() {
            for (key, value) in map {
                match key.as_str() {
                    "function" | "type" => {}
                    "name" => shape.name = Some(placeholder(key, value)?),
                    "arguments" => shape.arguments = Some(placeholder(key, value)?),
                    "id" => shape.id = Some(placeholder(key, value)?),
                    key => {
                        return field.refuse(
                            &format!("transform.{key}"),
                            "a call has name, arguments and id only",
                        );
                    }
                }
            }
        }
        if function.is_some() {
            shape.function = false;
            if shape.name.is_none() || shape.arguments.is_none() {
                return field.refuse("transform", "it gives no name, or no arguments");
            }
        }
        Ok(shape)
    }

    /// Refuses a transform unless the content is the arguments, and the group the name.
    fn whole_content(&self, field: &Field<'_>) -> Result<(), Problem> {
        let right = !self.function
            && self.name.as_deref() == Some("name")
            && self.arguments.as_deref() == Some("content")
            && self.id.as_deref().is_none_or(|id| id == "id");
        if right {
            return Ok(());
        }
        field.refuse(
            "transform",
            "with a group `name`, expected the name to be \"{name}\" and the arguments \
             \"{content}\"",
        )
    }

    /// The keys of JSON calls.
    fn json(&self, field: &Field<'_>) -> Result<JsonCalls, Problem> {
        let mut calls = JsonCalls::marked();
        let each = field.flag("transform_each")?;
        let key = |placeholder: &str| {
            let key = placeholder.strip_prefix("content.");
            let key = key.or_else(|| Some(placeholder).filter(|_| each));
            key.filter(|key| !key.is_empty() && !key.contains('.') && *key != "content")
                .map(str::to_owned)
        };
        for (what, placeholder, keys) in [
            ("name", &self.name, &mut calls.name),
            ("arguments", &self.arguments, &mut calls.arguments),
            ("id", &self.id, &mut calls.id),
        ] {
            let Some(placeholder) = placeholder else {
                continue;
            };
            match key(placeholder) {
                Some(key) => *keys = vec![key],
                None => {
                    return field.refuse(
                        &format!("transform.{what}"),
                        "expected a key of the call's object: \"{key}\" with transform_each, or \
                         \"{content.key}\"",
                    );
                }
            }
        }
        Ok(calls)
    }
}

/// A name in the opening, and JSON behind it.
fn named_calls(field: &Field<'_>, open: &Pattern, close: &[&str]) -> Result<Syntax, Problem> {
    let arguments = field.arguments(&["unquoted_keys", "string_delims", "allow_non_json"])?;
    let Some((before, after)) = open.around("name") else {
        return field.refuse(
            "open_pattern",
            "expected literal text before the group `name`",
        );
    };
    let (marker, prefix) = split_prefix(&before);
    if before.starts_with("<|channel|>commentary") && open.ends_with("<|message|>") {
        let recipient = before.rsplit("to=").next().unwrap_or_default();
        let calls = ChannelCalls {
            prefix: recipient.to_owned(),
        };
        return Ok(Syntax::whole(Body::Channels(calls)));
    }
    if marker.trim().is_empty() {
        return field.refuse("open_pattern", "a marker must stand before the name");
    }
    let unquoted = arguments.get("unquoted_keys").and_then(Value::as_bool) == Some(true);
    if unquoted && after.iter().all(Piece::is_space) {
        let quotes = quotes(field, &arguments)?;
        let calls = BracedCalls {
            prefix: prefix.to_owned(),
            quotes,
        };
        return Ok(Syntax::between(&[marker], close, Body::Braced(calls)));
    }
    if arguments.contains_key("string_delims") {
        return field.refuse(
            "content_args.string_delims",
            "strings in tokens of their own are read only with unquoted keys right behind the name",
        );
    }
    let mut calls = NamedCalls {
        open: vec![marker.to_owned()],
        // A fence around the JSON is read with it.
        close: close
            .iter()
            .map(|text| text.trim_start_matches('`').trim_start())
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect(),
        prefix: prefix.to_owned(),
        ..NamedCalls::default()
    };
    let mut id_next = false;
    for piece in &after {
        match piece {
            Piece::Literal(text) if text.trim() == ":" && after.contains(&Piece::Digits) => {}
            Piece::Space => {}
            Piece::Digits => calls.indexed = true,
            Piece::Group(name) if name == "id" => {
                if let Some((_, part)) = calls.parts.last_mut() {
                    *part = Part::Id;
                }
                id_next = true;
            }
            Piece::Literal(text) => {
                // JSON in a fence is read as JSON.
                let text = text.trim().trim_end_matches("json").trim_end_matches('`');
                if !text.trim().is_empty() {
                    calls.parts.push((text.trim().to_owned(), Part::Arguments));
                }
            }
            _ => {
                return field.refuse(
                    "open_pattern",
                    "behind the name only literal text, white space, an index and a group `id` \
                     can be read",
                );
            }
        }
    }
    if id_next && !matches!(calls.parts.last(), Some((_, Part::Arguments))) {
        return field.refuse(
            "open_pattern",
            "a marker must stand between id and arguments",
        );
    }
    let last = calls.parts.len().saturating_sub(1);
    for (index, (_, part)) in calls.parts.iter_mut().enumerate() {
        if index < last && *part == Part::Arguments {
            *part = Part::Ignored;
        }
    }
    Ok(Syntax::between(&[marker], &[], Body::Named(calls)))
}

/// The tokens on both sides of strings.
fn quotes(field: &Field<'_>, arguments: &Map<String, Value>) -> Result<Vec<String>, Problem> {
    let pairs = match arguments.get("string_delims") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(pairs)) => pairs,
        Some(_) => return field.refuse("content_args.string_delims", "expected a list of pairs"),
    };
    pairs
        .iter()
        .map(|pair| {
            let sides = pair.as_array().map(Vec::as_slice);
            match sides {
                Some([Value::String(open), Value::String(close)]) if open == close => {
                    Ok(open.clone())
                }
                _ => field.refuse(
                    "content_args.string_delims",
                    "expected pairs of the same token on both sides",
                ),
            }
        })
        .collect()
}

/// A name in the opening, and an element for each argument.
fn element_calls(
    field: &Field<'_>,
    open: &Pattern,
    close: &[&str],
    sections: &[&str],
) -> Result<Syntax, Problem> {
    let arguments = field.arguments(&["tag_pattern", "value_parser", "merge_duplicates"])?;
    if arguments.get("merge_duplicates").and_then(Value::as_bool) == Some(true) {
        return field.refuse(
            "content_args.merge_duplicates",
            "the last value of a key counts; lists of them are not made",
        );
    }
    value_parser(field, &arguments)?;
    let key = "content_args.tag_pattern";
    let Some(tag) = arguments.get("tag_pattern").and_then(Value::as_str) else {
        return field.refuse(key, "expected a pattern with the groups `key` and `value`");
    };
    let tags = pattern::read(tag).or_else(|problem| field.refuse(key, &problem))?;
    // Alternatives may differ in other attributes, of which the declaration says nothing.
    let mut arguments = tags.iter().map(argument_of);
    let first = arguments.next().flatten();
    if first.is_some() && arguments.any(|other| other != first) {
        return field.refuse(key, "alternatives cannot be read here");
    }
    let Some(argument) = first else {
        return field.refuse(
            key,
            "expected <tag=KEY>VALUE</tag>, <tag name=\"KEY\">VALUE</tag>, <KEY>VALUE</KEY>, or \
             key and value in elements of their own",
        );
    };
    let refuse = |problem| field.refuse("open_pattern", problem);
    match argument {
        Argument::Pairs { key, value } => {
            if !sections.is_empty() {
                return field.refuse("close_pattern", NOT_LITERAL);
            }
            let Some((before, after)) = open.around("name") else {
                return refuse("expected literal text before the group `name`");
            };
            let ends: Vec<String> = after.iter().filter_map(Piece::marker).collect();
            if after
                .iter()
                .any(|piece| !piece.is_space() && piece.marker().is_none())
            {
                return refuse("behind the name only literal text and white space can be read");
            }
            let calls = KeyValueCalls {
                open: Vec::new(),
                name_end: ends,
                key,
                kind: None,
                value,
                close: Vec::new(),
            };
            Ok(Syntax::between(
                &[before.trim()],
                close,
                Body::KeyValue(calls),
            ))
        }
        Argument::Element { argument, framed } => {
            let Some((wrapper, call)) = call_tag(open) else {
                return refuse(
                    "expected <tag=NAME> or <tag name=\"NAME\">, with or without a marker before",
                );
            };
            let section = wrapper.is_some();
            let mut call = call;
            if section && sections.is_empty() {
                // The call's own closing tag stands before that of the section.
                call.close = closing(&call.open);
            } else {
                call.close = close.iter().map(|text| (*text).to_owned()).collect();
            }
            if call.close.is_empty() {
                return field.refuse("close", "a call needs what closes it");
            }
            let opener = wrapper
                .or_else(|| call.open.first().cloned())
                .unwrap_or_default();
            let calls = TaggedCalls {
                call,
                argument,
                framed,
                cdata: false,
            };
            let ends = match (sections.is_empty(), section) {
                (false, _) => sections,
                (true, true) => close,
                (true, false) => &[],
            };
            Ok(Syntax::between(
                &[opener.as_str()],
                ends,
                Body::Tagged(calls),
            ))
        }
    }
}

/// Values are read as JSON when they are JSON, else as text, unless a schema says otherwise; a
/// parser that would refuse either cannot be followed.
fn value_parser(field: &Field<'_>, arguments: &Map<String, Value>) -> Result<(), Problem> {
    let name = match arguments.get("value_parser") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(parser)) => parser.get("name").and_then(Value::as_str),
        Some(_) => None,
    };
    match name {
        Some("json" | "text") => Ok(()),
        _ => field.refuse(
            "content_args.value_parser",
            "values are text or JSON; other types come from the tools' schemas",
        ),
    }
}

/// How a template writes one argument.
#[derive(PartialEq)]
enum Argument {
    Element {
        argument: ArgumentTag,
        framed: bool,
    },
    Pairs {
        key: (String, String),
        value: (String, String),
    },
}

fn argument_of(tag: &Pattern) -> Option<Argument> {
    let (before, rest) = tag.around("key")?;
    let at = rest
        .iter()
        .position(|piece| *piece == Piece::Group("value".to_owned()))?;
    let (between, behind) = (rest.get(..at)?, rest.get(at + 1..)?);
    let framed = between.last().is_some_and(Piece::is_space);
    if let [Piece::Literal(end)] = trimmed(between)
        && behind.contains(&Piece::Same("key".to_owned()))
        && let [Piece::Literal(close), Piece::Same(_), Piece::Literal(last)] = trimmed(behind)
        && end == last
    {
        let argument = ArgumentTag::Element {
            open: before,
            end: end.clone(),
            close: close.clone(),
            around: Vec::new(),
        };
        return Some(Argument::Element { argument, framed });
    }
    let [Piece::Literal(close)] = trimmed(behind) else {
        return None;
    };
    if let Some((key_close, value_open)) = two_tags(trimmed(between)) {
        return Some(Argument::Pairs {
            key: (before.trim().to_owned(), key_close),
            value: (value_open, close.trim().to_owned()),
        });
    }
    let (open, name, end) = opening(tag, "key", trimmed(between))?;
    let tag = Tag {
        open: vec![open],
        name,
        end,
        close: vec![close.trim().to_owned()],
    };
    Some(Argument::Element {
        argument: ArgumentTag::Keyed(tag),
        framed,
    })
}

/// What closes one element and opens the next.
fn two_tags(pieces: &[Piece]) -> Option<(String, String)> {
    match pieces {
        [Piece::Literal(close), Piece::Space, Piece::Literal(open)] => {
            Some((close.trim().to_owned(), open.trim().to_owned()))
        }
        [Piece::Literal(both)] => {
            let at = both.find("><")? + 1;
            let open = both.get(at..)?;
            let ends = both.starts_with("</") && open.ends_with('>');
            ends.then(|| Some((both.get(..at)?.to_owned(), open.to_owned())))?
        }
        _ => None,
    }
}

/// The marker before a call's tag, if any, and the tag without what closes it.
fn call_tag(open: &Pattern) -> Option<(Option<String>, Tag)> {
    let (_, after) = open.around("name")?;
    let (all, name, end) = opening(open, "name", trimmed(&after))?;
    // What stands before the last tag is a marker of its own.
    let at = all.trim_end().rfind('<').filter(|at| *at > 0);
    let (wrapper, own) = match at.and_then(|at| Some((all.get(..at)?, all.get(at..)?))) {
        Some((wrapper, own)) if !wrapper.trim().is_empty() => {
            (Some(wrapper.trim().to_owned()), own.to_owned())
        }
        _ => (None, all.trim().to_owned()),
    };
    let tag = Tag {
        open: vec![own],
        name,
        end,
        close: Vec::new(),
    };
    Some((wrapper, tag))
}

/// The opening of a tag whose name or key is a group: its literal, where the name stands, its end.
fn opening(tag: &Pattern, group: &str, after: &[Piece]) -> Option<(String, NameAt, String)> {
    let end = match after {
        [Piece::Literal(end)] => end.clone(),
        [
            Piece::Literal(quote),
            Piece::Attributes,
            Piece::Literal(end),
        ] => format!("{quote}{end}"),
        [
            Piece::Literal(quote),
            Piece::Attributes,
            Piece::Literal(end),
            Piece::Space,
        ] => {
            format!("{quote}{end}")
        }
        _ => return None,
    };
    let (before, attributes) = tag.before(group)?;
    if let Some(end) = end.strip_prefix(['"', '\'']) {
        let head = before.trim_end_matches(['"', '\'']).strip_suffix('=')?;
        let at = head.rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))? + 1;
        let (open, attribute) = (head.get(..at)?, head.get(at..)?);
        let name = NameAt::Attribute {
            names: vec![attribute.to_owned()],
            element: None,
        };
        // Attributes behind the name may be there or not, and in any order.
        let end = match end.strip_suffix('>') {
            Some(more) if more.starts_with(' ') && more.ends_with(['"', '\'']) => ">",
            _ => end.trim(),
        };
        return Some((open.trim().to_owned(), name, end.to_owned()));
    }
    if attributes {
        return None;
    }
    Some((before, NameAt::Inline, end))
}

/// The closing tags that belong to opening ones: `</function>` to `<function=`.
fn closing(open: &[String]) -> Vec<String> {
    let of = |open: &String| {
        let name = open.strip_prefix('<')?.trim_end_matches('=').trim();
        Some(format!("</{name}>"))
    };
    open.iter().filter_map(of).collect()
}

fn trimmed(pieces: &[Piece]) -> &[Piece] {
    let mut pieces = pieces;
    while let [Piece::Space, rest @ ..] | [rest @ .., Piece::Space] = pieces {
        pieces = rest;
    }
    pieces
}

/// The marker before a name, and what belongs to the name: `<call>` and `functions.`.
fn split_prefix(before: &str) -> (&str, &str) {
    let at = before.rfind(['>', ']', '｜', '|']).map_or(0, |at| {
        at + before
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(1, char::len_utf8)
    });
    match at {
        0 => (before.trim(), ""),
        at => {
            let (marker, prefix) = before.split_at(at);
            (marker.trim(), prefix.trim())
        }
    }
}
