//! Formats as plain data: what a declaration looks like as JSON, and what it must not hold.

use serde::{Deserialize, Deserializer, Serialize};

use super::{ArgumentTag, Body, Format, JsonCalls, NameAt, Place, Syntax, Tag};
use crate::ConfigError;

/// Longest label or marker, in bytes.
const LONGEST: usize = 256;
/// Most markers of one format.
const MOST_MARKERS: usize = 512;

/// A syntax as data: the keys of its place beside `calls`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SyntaxData {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<OneOrMany>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    close: Option<OneOrMany>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence: Option<OneOrMany>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<bool>,
    calls: Body,
}

/// Texts, of which a single one may stand without a list.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Vec<String> {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    OneOrMany::deserialize(deserializer).map(Vec::from)
}

pub(super) fn tag_end() -> String {
    ">".to_owned()
}

impl TryFrom<SyntaxData> for Syntax {
    type Error = &'static str;

    fn try_from(data: SyntaxData) -> Result<Self, Self::Error> {
        let place = match (data.open, data.close, data.fence, data.whole) {
            (Some(open), close, None, None | Some(false)) => Place::Markers {
                open: open.into(),
                close: close.map_or_else(Vec::new, Vec::from),
            },
            (None, None, Some(languages), None | Some(false)) => Place::Fence {
                languages: Vec::from(languages)
                    .iter()
                    .map(|language| language.to_lowercase())
                    .collect(),
            },
            (None, None, None, Some(true)) => Place::Whole,
            _ => {
                return Err(
                    "a syntax stands between `open` and `close`, in a `fence`, or is the `whole` \
                     reply (true): give one of the three",
                );
            }
        };
        Ok(Self {
            place,
            body: data.calls,
        })
    }
}

impl From<Syntax> for SyntaxData {
    fn from(syntax: Syntax) -> Self {
        let mut data = Self {
            open: None,
            close: None,
            fence: None,
            whole: None,
            calls: syntax.body,
        };
        match syntax.place {
            Place::Markers { open, close } => {
                data.open = Some(OneOrMany::Many(open));
                data.close = Some(OneOrMany::Many(close));
            }
            Place::Fence { languages } => data.fence = Some(OneOrMany::Many(languages)),
            Place::Whole => data.whole = Some(true),
        }
        data
    }
}

impl Format {
    /// Reads a declaration that was written as JSON.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadFormat`] that names the field and says what is wrong with it.
    ///
    /// # Examples
    ///
    /// ```
    /// use turnwarden_extract::Format;
    ///
    /// let acme = Format::from_json(
    ///     r#"{"label": "acme", "syntaxes": [{"open": "<acme>", "close": "</acme>", "calls": {"json": {}}}]}"#,
    /// )?;
    /// assert_eq!(Format::from_json(&acme.to_json())?, acme);
    /// # Ok::<(), turnwarden_extract::ConfigError>(())
    /// ```
    pub fn from_json(json: &str) -> Result<Self, ConfigError> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let format: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let problem = error.inner().to_string();
            // Where in the JSON text means nothing to those who never saw it.
            let problem = problem.split(" at line ").next().unwrap_or_default();
            bad(&label_of(json), &path, &in_plain_words(problem))
        })?;
        format.check()?;
        Ok(format)
    }

    /// The declaration as JSON; [`from_json`](Self::from_json) reads it back.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Writing strings, lists and booleans to memory cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Refuses what no reply could be read by.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadFormat`] that names the field and says what is wrong with it.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut checker = Checker {
            label: &self.label,
            markers: 0,
        };
        checker.format(self)
    }
}

/// The label of a declaration that cannot be read otherwise.
fn label_of(json: &str) -> String {
    let label = serde_json::from_str::<serde_json::Value>(json);
    let label = label
        .ok()
        .and_then(|data| data.get("label")?.as_str().map(str::to_owned));
    label.unwrap_or_default()
}

/// A problem in the words of the documentation instead of those of the reader.
fn in_plain_words(problem: &str) -> String {
    let whole = match problem {
        "expected value" => Some("expected the name of a kind of calls, or an object under it"),
        "invalid type: unit variant, expected newtype variant" => {
            Some("expected an object with the keys of this kind, {} for none")
        }
        "invalid type: newtype variant, expected unit variant" => {
            Some("takes no keys: give the name alone")
        }
        _ => None,
    };
    if let Some(words) = whole {
        return words.to_owned();
    }
    let mut plain = problem.to_owned();
    for (word, ours) in [
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: map", "invalid type: object"),
        ("expected a sequence", "expected a list"),
        ("expected a tuple of size 2", "expected a pair"),
        ("an array of length 2", "a pair"),
        ("unknown variant", "unknown kind"),
    ] {
        plain = plain.replace(word, ours);
    }
    if let Some((found, expected)) = plain.split_once("expected struct ") {
        let known = |end: char| !end.is_ascii_alphanumeric();
        let rest = expected.split_once(known).map_or("", |(_, rest)| rest);
        plain = format!("{found}expected an object{rest}");
    }
    plain
}

fn bad(label: &str, field: &str, problem: &str) -> ConfigError {
    let problem = match field {
        "" | "." => problem.to_owned(),
        field => format!("{field}: {problem}"),
    };
    ConfigError::BadFormat {
        label: label.to_owned(),
        problem,
    }
}

struct Checker<'a> {
    label: &'a str,
    markers: usize,
}

type Checked = Result<(), ConfigError>;

impl Checker<'_> {
    fn refuse(&self, field: &str, problem: &str) -> Checked {
        Err(bad(self.label, field, problem))
    }

    fn format(&mut self, format: &Format) -> Checked {
        if format.label.trim().is_empty() || format.label.len() > LONGEST {
            return self.refuse("label", "a label has 1 to 256 bytes");
        }
        if format.syntaxes.is_empty() {
            return self.refuse("syntaxes", "at least one way of writing calls is needed");
        }
        for (index, syntax) in format.syntaxes.iter().enumerate() {
            self.syntax(&format!("syntaxes[{index}]"), syntax)?;
        }
        self.pairs("reasoning", &format.reasoning)?;
        self.pairs("wrappers", &format.wrappers)?;
        self.markers("end_of_turn", &format.end_of_turn)?;
        if self.markers > MOST_MARKERS {
            return self.refuse("syntaxes", "more than 512 markers");
        }
        Ok(())
    }

    fn syntax(&mut self, field: &str, syntax: &Syntax) -> Checked {
        let calls = format!("{field}.calls");
        match &syntax.place {
            Place::Markers { open, close } => {
                self.some(&format!("{field}.open"), open)?;
                self.markers(&format!("{field}.close"), close)?;
                let (whole, kind) = match &syntax.body {
                    Body::Workflow => (true, "workflow JSON"),
                    Body::Channels(_) => (true, "messages on channels"),
                    Body::React(_) => (true, "a ReAct transcript"),
                    Body::Native => (true, "a native message"),
                    _ => (false, ""),
                };
                if whole {
                    let problem = format!(
                        "{kind} stands between no markers: use \"whole\": true in place of `open`"
                    );
                    return self.refuse(&calls, &problem);
                }
            }
            Place::Fence { languages } => {
                if languages.is_empty() {
                    return self.refuse(&format!("{field}.fence"), "name at least one language");
                }
                if !matches!(syntax.body, Body::Json(_) | Body::Python(_)) {
                    return self.refuse(&calls, "fenced code holds `json` or `python` calls only");
                }
            }
            Place::Whole => match &syntax.body {
                Body::Json(json) if json.explicit => {
                    return self.refuse(
                        &format!("{calls}.json.explicit"),
                        "JSON without markup is a call only when it says so: set it to false",
                    );
                }
                Body::Named(_) | Body::Tagged(_) | Body::KeyValue(_) | Body::Braced(_) => {
                    return self.refuse(
                        &calls,
                        "calls of this kind need markers around them: use `open`",
                    );
                }
                _ => {}
            },
        }
        self.body(&calls, &syntax.body)
    }

    fn body(&mut self, field: &str, body: &Body) -> Checked {
        match body {
            Body::Json(json) => self.json(&format!("{field}.json"), json),
            Body::Named(named) => {
                let field = format!("{field}.named");
                self.markers(&format!("{field}.open"), &named.open)?;
                for (index, (marker, _)) in named.parts.iter().enumerate() {
                    self.marker(&format!("{field}.parts[{index}][0]"), marker)?;
                }
                self.markers(&format!("{field}.close"), &named.close)
            }
            Body::Tagged(tagged) => {
                let field = format!("{field}.tagged");
                self.tag(&format!("{field}.call"), &tagged.call)?;
                match &tagged.argument {
                    ArgumentTag::Keyed(tag) => self.tag(&format!("{field}.argument.keyed"), tag),
                    ArgumentTag::Element {
                        open,
                        end,
                        close,
                        around,
                    } => {
                        let field = format!("{field}.argument.element");
                        self.marker(&format!("{field}.open"), open)?;
                        self.marker(&format!("{field}.end"), end)?;
                        self.marker(&format!("{field}.close"), close)?;
                        self.markers(&format!("{field}.around"), around)
                    }
                }
            }
            Body::KeyValue(pairs) => {
                let field = format!("{field}.key_value");
                self.markers(&format!("{field}.open"), &pairs.open)?;
                self.markers(&format!("{field}.name_end"), &pairs.name_end)?;
                self.pair(&format!("{field}.key"), &pairs.key)?;
                self.pair(&format!("{field}.value"), &pairs.value)?;
                if let Some(kind) = &pairs.kind {
                    self.pair(&format!("{field}.kind"), kind)?;
                }
                self.markers(&format!("{field}.close"), &pairs.close)
            }
            Body::Braced(braced) => self.markers(&format!("{field}.braced.quotes"), &braced.quotes),
            Body::React(react) => {
                let field = format!("{field}.react");
                for (name, text) in [
                    ("thought", &react.thought),
                    ("action", &react.action),
                    ("input", &react.input),
                    ("observation", &react.observation),
                    ("answer", &react.answer),
                ] {
                    self.marker(&format!("{field}.{name}"), text)?;
                }
                self.json(&format!("{field}.json"), &react.json)
            }
            Body::Workflow | Body::Python(_) | Body::Channels(_) | Body::Native => Ok(()),
        }
    }

    fn json(&mut self, field: &str, json: &JsonCalls) -> Checked {
        if json.name_is_key {
            return Ok(());
        }
        self.some(&format!("{field}.name"), &json.name)?;
        self.some(&format!("{field}.arguments"), &json.arguments)
    }

    fn tag(&mut self, field: &str, tag: &Tag) -> Checked {
        self.some(&format!("{field}.open"), &tag.open)?;
        self.some(&format!("{field}.close"), &tag.close)?;
        match &tag.name {
            NameAt::Inline => self.marker(&format!("{field}.end"), &tag.end),
            NameAt::Attribute { names, element } => {
                let field = format!("{field}.name.attribute");
                self.some(&format!("{field}.names"), names)?;
                match element {
                    Some(pair) => self.pair(&format!("{field}.element"), pair),
                    None => Ok(()),
                }
            }
        }
    }

    fn some(&mut self, field: &str, texts: &[String]) -> Checked {
        if texts.is_empty() {
            return self.refuse(field, "at least one is needed");
        }
        self.markers(field, texts)
    }

    fn pairs(&mut self, field: &str, pairs: &[(String, String)]) -> Checked {
        for (index, pair) in pairs.iter().enumerate() {
            self.pair(&format!("{field}[{index}]"), pair)?;
        }
        Ok(())
    }

    fn pair(&mut self, field: &str, (open, close): &(String, String)) -> Checked {
        self.marker(&format!("{field}[0]"), open)?;
        self.marker(&format!("{field}[1]"), close)?;
        if open == close {
            return self.refuse(field, "what opens and what closes must differ");
        }
        Ok(())
    }

    fn markers(&mut self, field: &str, markers: &[String]) -> Checked {
        for (index, marker) in markers.iter().enumerate() {
            self.marker(&format!("{field}[{index}]"), marker)?;
        }
        Ok(())
    }

    fn marker(&mut self, field: &str, marker: &str) -> Checked {
        self.markers += 1;
        if marker.trim().is_empty() {
            return self.refuse(field, "it is empty or only white space");
        }
        if marker.len() > LONGEST {
            return self.refuse(field, "it is longer than 256 bytes");
        }
        if marker.starts_with("```") || marker.starts_with("~~~") {
            return self.refuse(field, "it is a code fence: use `fence` with its language");
        }
        if marker.starts_with(['`', '~']) {
            return self.refuse(field, "it begins with a mark of code, which is text");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats;

    fn problem(json: &str) -> String {
        Format::from_json(json).unwrap_err().to_string()
    }

    #[test]
    fn every_format_is_its_own_data() {
        for format in formats() {
            assert_eq!(&Format::from_json(&format.to_json()).unwrap(), &**format);
        }
    }

    #[test]
    fn an_error_names_the_field() {
        for (json, field) in [
            ("{}", "label"),
            (r#"{"label": "a"}"#, "syntaxes"),
            (r#"{"label": "a", "syntaxes": []}"#, "syntaxes"),
            (r#"{"label": " ", "syntaxes": []}"#, "label"),
            (
                r#"{"label": "a", "syntaxes": [{"calls": "workflow"}]}"#,
                "syntaxes[0]",
            ),
            (
                r#"{"label": "a", "syntaxes": [{"open": "", "calls": {"json": {}}}]}"#,
                "syntaxes[0].open[0]",
            ),
            (
                r#"{"label": "a", "syntaxes": [{"open": "<a>", "calls": {"json": {"nam": "x"}}}]}"#,
                "nam",
            ),
            (
                r#"{"label": "a", "syntaxes": [{"open": "<a>", "calls": {"json": {"name": 3}}}]}"#,
                "syntaxes[0].calls.json.name",
            ),
            (
                r#"{"label": "a", "syntaxes": [{"whole": true, "calls": {"json": {}}}]}"#,
                "syntaxes[0].calls.json.explicit",
            ),
            (
                r#"{"label": "a", "syntaxes": [{"open": "<a>", "calls": "native"}]}"#,
                "syntaxes[0].calls",
            ),
            (
                r#"{"label": "a", "reasoning": [["<t>", "<t>"]], "syntaxes": [{"open": "<a>", "calls": {"json": {}}}]}"#,
                "reasoning[0]",
            ),
        ] {
            let said = problem(json);
            assert!(said.contains(field), "{json}: {said}");
        }
    }
}
