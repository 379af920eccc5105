//! Which tool a call names, and what is known and ordered about it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use turnwarden_signature::{Signature, Value};

use crate::config::{ConfigError, MOST_TURNS};
use crate::kind::{Annotations, KindTables, ToolKind};

/// Longer names are kept by their first bytes and a hash.
const LONGEST_NAME: usize = 192;
/// Tools that a registry remembers; more are looked up anew at each call.
const MOST_TOOLS: usize = 1024;
/// A call that could not be read is recorded under a name that begins so.
pub const REFUSED_PREFIX: &str = "_invalid";

/// Which arguments make two calls of a tool the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LoopKey {
    /// All but the ignored ones.
    #[default]
    Arguments,
    /// These alone.
    Fields(Vec<Box<str>>),
    /// None: no call of this tool is ever a repeat of another.
    Never,
    /// What a function of the caller's makes of them; its number is the caller's too.
    Function(u32),
}

/// What is ordered about a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// What the tool does; inferred when not given.
    pub kind: Option<ToolKind>,
    /// Top-level arguments that never count, such as a nonce.
    pub ignore_arguments: Vec<Box<str>>,
    /// Equal turns in a row that make a loop, in place of the detector's own number.
    pub repeat_threshold: Option<u32>,
    /// Which arguments make two calls the same.
    pub loop_key: LoopKey,
}

impl ToolPolicy {
    /// Names the first field that is out of its range.
    ///
    /// # Errors
    /// That field, its value and its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self.repeat_threshold {
            Some(value) if !(2..=MOST_TURNS).contains(&value) => Err(ConfigError::new(
                "repeat_threshold",
                value,
                format!("an integer from 2 to {MOST_TURNS}"),
            )),
            _ => Ok(()),
        }
    }

    fn counts_all_arguments(&self) -> bool {
        self.ignore_arguments.is_empty() && self.loop_key == LoopKey::Arguments
    }

    fn counts(&self, argument: &[u8]) -> bool {
        let is = |name: &str| name.as_bytes() == argument;
        let chosen = match &self.loop_key {
            LoopKey::Fields(fields) => fields.iter().any(|name| is(name)),
            LoopKey::Arguments | LoopKey::Never | LoopKey::Function(_) => true,
        };
        chosen && !self.ignore_arguments.iter().any(|name| is(name))
    }
}

/// A tool as the rules see it.
#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    name: Box<str>,
    kind: ToolKind,
    command_decides: bool,
    is_shell: bool,
    policy: Option<ToolPolicy>,
}

impl Tool {
    /// Its name; a very long one is cut and ends with its hash.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is ordered about it.
    #[must_use]
    pub fn policy(&self) -> Option<&ToolPolicy> {
        self.policy.as_ref()
    }

    /// Whether calls under this name were answered without being run.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.name.starts_with(REFUSED_PREFIX)
    }

    /// Equal turns in a row that make a loop, where a policy says so.
    #[must_use]
    pub fn repeat_threshold(&self) -> Option<u32> {
        self.policy.as_ref()?.repeat_threshold
    }

    /// Whether a policy reduces the arguments that count.
    #[must_use]
    pub fn reduces_arguments(&self) -> bool {
        self.policy
            .as_ref()
            .is_some_and(|policy| !policy.counts_all_arguments())
    }

    /// Whether this top-level argument counts when calls are compared.
    #[must_use]
    pub fn counts(&self, argument: &[u8]) -> bool {
        self.policy
            .as_ref()
            .is_none_or(|policy| policy.counts(argument))
    }

    /// The signature of a call of this tool, over the arguments that count.
    #[must_use]
    pub fn signature(&self, name: &[u8], arguments: Value<'_>) -> Signature {
        if self.reduces_arguments() {
            return Signature::of_some(name, arguments, |argument| self.counts(argument));
        }
        Signature::of_bytes(name, arguments.as_bytes())
    }

    /// What one call of this tool does, and whether it is a command for a shell.
    pub(crate) fn kind_of_call(
        &self,
        tables: &KindTables,
        arguments: Value<'_>,
    ) -> (ToolKind, bool) {
        if !self.is_shell {
            return (self.kind, false);
        }
        let Some(command) = command_of(arguments) else {
            return (self.kind, false);
        };
        let kind = if self.command_decides {
            tables.of_command(&command)
        } else {
            self.kind
        };
        (kind, true)
    }
}

/// The command line in a shell's arguments: a text, or words such as `["bash", "-lc", "ls"]`.
fn command_of(arguments: Value<'_>) -> Option<std::borrow::Cow<'_, str>> {
    let command = arguments.get("command").or_else(|| arguments.get("cmd"))?;
    if let Some(text) = command.as_str() {
        return Some(text.into());
    }
    let words: Vec<&str> = command.items().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [] => None,
        [_, option, script] if option.starts_with('-') && option.ends_with('c') => {
            Some((*script).into())
        }
        _ => Some(words.join(" ").into()),
    }
}

/// All that is known about tools, with what was looked up already.
#[derive(Debug, Default)]
pub struct Tools {
    /// Words and programs and what they do.
    pub tables: KindTables,
    /// Policies by name or pattern (`*` any text, `?` any character), the first match counts,
    /// exact names before patterns.
    pub policies: Vec<(Box<str>, ToolPolicy)>,
    /// What servers say about their tools, by name.
    pub annotations: HashMap<Box<str>, Annotations>,
    known: RwLock<HashMap<Box<str>, Arc<Tool>>>,
}

impl Tools {
    /// Tools with these tables, policies and hints.
    #[must_use]
    pub fn new(
        tables: KindTables,
        policies: Vec<(Box<str>, ToolPolicy)>,
        annotations: HashMap<Box<str>, Annotations>,
    ) -> Self {
        Self {
            tables,
            policies,
            annotations,
            known: RwLock::default(),
        }
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Arc<Tool> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = known.get(name) {
            return Arc::clone(tool);
        }
        drop(known);
        let tool = Arc::new(self.describe(name));
        if name.len() <= LONGEST_NAME {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() < MOST_TOOLS {
                known.insert(name.into(), Arc::clone(&tool));
            }
        }
        tool
    }

    fn describe(&self, name: &str) -> Tool {
        let kept = kept_name(name);
        let name = &*kept;
        let policy = self.policy(name);
        let from_name = self.tables.of_name(name);
        let ordered = policy.and_then(|policy| match policy.loop_key {
            LoopKey::Never => Some(ToolKind::Exempt),
            _ => policy.kind,
        });
        let hinted = || self.annotations.get(name)?.kind(from_name);
        let decided = ordered.or_else(hinted);
        Tool {
            name: name.into(),
            kind: decided.unwrap_or(from_name),
            command_decides: decided.is_none(),
            is_shell: self.tables.is_shell(name),
            policy: policy.cloned(),
        }
    }

    fn policy(&self, name: &str) -> Option<&ToolPolicy> {
        let exact = self.policies.iter().find(|(key, _)| **key == *name);
        let found = exact.or_else(|| self.policies.iter().find(|(key, _)| matches(key, name)));
        found.map(|(_, policy)| policy)
    }
}

/// The name as it is kept: whole, or its beginning and a hash that tells it from others.
fn kept_name(name: &str) -> Box<str> {
    if name.len() <= LONGEST_NAME {
        return name.into();
    }
    // Kept names are kept as they are.
    let cut = (0..=LONGEST_NAME - 19)
        .rev()
        .find(|&at| name.is_char_boundary(at))
        .unwrap_or(0);
    let head = name.get(..cut).unwrap_or_default();
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{head}…{}", hash.get(..16).unwrap_or_default()).into()
}

/// Whether a name fits a pattern of `*` and `?`; the product of their lengths at worst.
fn matches(pattern: &str, name: &str) -> bool {
    if name.len() > LONGEST_NAME {
        return pattern == "*";
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || Some(&c) == name.get(n) => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((star_at, taken)) = star else {
                    return false;
                };
                star = Some((star_at, taken + 1));
                p = star_at + 1;
                n = taken + 1;
            }
        }
    }
    pattern.iter().skip(p).all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("search", "search", true),
            ("search_*", "search_web", true),
            ("*_status", "job_status", true),
            ("*a*b", "xxaxxb", true),
            ("?at", "cat", true),
            ("?at", "at", false),
            ("*", "", true),
            ("a*", "ba", false),
            ("*工具", "我的工具", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn exact_names_win_over_patterns_and_policies_over_hints() {
        let policy = |kind| ToolPolicy {
            kind: Some(kind),
            ..ToolPolicy::default()
        };
        let hints = Annotations {
            read_only: Some(true),
            ..Annotations::default()
        };
        let tools = Tools::new(
            KindTables::default(),
            vec![
                ("get_*".into(), policy(ToolKind::Write)),
                ("get_it".into(), policy(ToolKind::Poll)),
            ],
            HashMap::from([("get_it".into(), hints), ("frob".into(), hints)]),
        );
        assert_eq!(tools.get("get_it").kind, ToolKind::Poll);
        assert_eq!(tools.get("get_x").kind, ToolKind::Write);
        assert_eq!(tools.get("frob").kind, ToolKind::Read);
        assert_eq!(tools.get("frob2").kind, ToolKind::Unknown);
    }

    #[test]
    fn long_names_stay_apart_and_short() {
        let tools = Tools::default();
        let (one, two) = ("x".repeat(1_000_000), "x".repeat(1_000_001));
        assert_ne!(tools.get(&one).name(), tools.get(&two).name());
        assert_eq!(tools.get(tools.get(&one).name()), tools.get(&one));
    }
}
