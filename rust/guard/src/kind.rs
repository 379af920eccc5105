//! What a tool does, told from its name, its arguments and what its server says about it.
//!
//! Everything here is a default: a [`crate::ToolPolicy`] overrides it tool by tool, and
//! [`KindTables`] word by word and program by program. The tables are data, so that they can be
//! listed, documented and extended.
//!
//! Costs: linear in the name, and for shells linear in the command.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

/// What a tool does, as far as progress is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolKind {
    /// Looks at something and leaves it as it is.
    Read,
    /// Changes something: a write that was not made before is progress.
    Write,
    /// Asks how something is coming along; the same answer is patience for a while.
    Poll,
    /// Does nothing outside the model: think, plan, sleep, wait.
    Idle,
    /// Never judged: its calls neither extend nor break a loop.
    Exempt,
    /// Not known.
    #[default]
    Unknown,
}

impl ToolKind {
    /// All kinds in the order of their documentation.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Poll,
        Self::Idle,
        Self::Exempt,
        Self::Unknown,
    ];

    /// The kind's name in configuration files and in Python.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Poll => "poll",
            Self::Idle => "idle",
            Self::Exempt => "exempt",
            Self::Unknown => "unknown",
        }
    }
}

impl FromStr for ToolKind {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or(())
    }
}

/// Words of a tool's name and what they say. A poll word counts wherever it stands; of the
/// others the first one in the name decides.
pub const VERBS: &[(ToolKind, &[&str])] = &[
    (
        ToolKind::Poll,
        &["status", "poll", "progress", "health", "output"],
    ),
    (
        ToolKind::Idle,
        &["think", "thought", "plan", "sleep", "wait", "reflect"],
    ),
    (
        ToolKind::Write,
        &[
            "write", "edit", "create", "update", "delete", "remove", "add", "set", "put", "post",
            "send", "insert", "replace", "patch", "apply", "move", "rename", "copy", "commit",
            "push", "book", "cancel", "modify", "exchange", "return", "save", "store", "submit",
            "upload", "attach", "generate", "publish", "append", "drop",
        ],
    ),
    (
        ToolKind::Read,
        &[
            "read", "get", "list", "ls", "grep", "search", "find", "fetch", "show", "view", "cat",
            "glob", "describe", "lookup", "recall", "query", "check", "browse", "snapshot",
            "inspect", "head", "tail", "count", "review", "discover", "open",
        ],
    ),
];

/// Tools that run a command line found in their `command` or `cmd` argument.
pub const SHELL_TOOLS: &[&str] = &[
    "bash",
    "shell",
    "sh",
    "exec",
    "run",
    "terminal",
    "bg_shell",
    "run_command",
    "execute_command",
    "run_shell_command",
    "local_shell",
    "computer_terminal",
    "execute_bash",
    "run_bash",
    "bash_command",
    "run_shell",
    "shell_command",
    "execute_shell_command",
    "run_terminal_cmd",
    "run_in_terminal",
    "exec_command",
];

/// Programs of a command line and what they do. `sed`, `git`, `find`, `curl` and the installers
/// also look at their arguments, see [`KindTables::of_command`].
pub const PROGRAMS: &[(ToolKind, &[&str])] = &[
    (ToolKind::Idle, &["sleep", "wait"]),
    (
        ToolKind::Write,
        &[
            "rm", "mv", "cp", "mkdir", "touch", "tee", "patch", "ln", "chmod", "rmdir", "truncate",
            "dd",
        ],
    ),
    (
        ToolKind::Read,
        &[
            "ls", "cat", "grep", "rg", "egrep", "find", "head", "tail", "nl", "pwd", "wc", "file",
            "stat", "which", "tree", "less", "echo", "true", "test", "type", "du", "df", "date",
            "ps", "env", "printenv", "sort", "uniq", "cut", "awk", "diff", "curl", "id", "whoami",
        ],
    ),
];

/// Programs that change only the shell itself and say nothing about the command.
const NEUTRAL_PROGRAMS: &[&str] = &["cd", "set", "export", "source", "."];
/// What `git` does without changing anything.
const GIT_READS: &[&str] = &[
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "branch",
    "ls-files",
    "grep",
    "rev-parse",
];
/// Programs that write when told to install.
const INSTALLERS: &[&str] = &["pip", "npm", "apt", "apt-get"];
/// What tells them to.
const INSTALLER_WRITES: &[&str] = &["install", "i", "uninstall"];
/// With one of these `find` may do anything.
const FIND_ACTIONS: &[&str] = &["-delete", "-exec"];
/// With an option that begins so `curl` may change its server.
const CURL_SENDS: &[&str] = &["-X", "-d", "--data", "-F", "--request"];

/// What an MCP server says about a tool of its own.
///
/// Hints that were not given are `None`: the protocol's defaults are no evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`, which has a meaning only for tools that write
    pub destructive: Option<bool>,
    /// `idempotentHint`, which has a meaning only for tools that write
    pub idempotent: Option<bool>,
}

impl Annotations {
    /// The kind that the hints tell, given what the tool's name says.
    ///
    /// A read-only tool may still be a poll or a think tool: no hint speaks of that.
    #[must_use]
    pub fn kind(self, from_name: ToolKind) -> Option<ToolKind> {
        let may_wait = matches!(from_name, ToolKind::Poll | ToolKind::Idle);
        match (self.read_only, self.destructive.or(self.idempotent)) {
            (Some(true), _) if may_wait => Some(from_name),
            (Some(true), _) => Some(ToolKind::Read),
            (Some(false), _) | (None, Some(_)) => Some(ToolKind::Write),
            (None, None) => None,
        }
    }
}

/// The tables above with the user's changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindTables {
    verbs: BTreeMap<Box<str>, ToolKind>,
    programs: BTreeMap<Box<str>, ToolKind>,
    shell_tools: Vec<Box<str>>,
}

impl Default for KindTables {
    fn default() -> Self {
        Self {
            verbs: table(VERBS),
            programs: table(PROGRAMS),
            shell_tools: SHELL_TOOLS.iter().map(|&name| name.into()).collect(),
        }
    }
}

fn table(rows: &[(ToolKind, &[&str])]) -> BTreeMap<Box<str>, ToolKind> {
    let words = rows
        .iter()
        .flat_map(|&(kind, words)| words.iter().map(move |&word| (word.into(), kind)));
    words.collect()
}

impl KindTables {
    /// Adds a word of tool names or changes its meaning; `Unknown` takes it out.
    pub fn set_verb(&mut self, word: &str, kind: ToolKind) {
        set(&mut self.verbs, word, kind);
    }

    /// Adds a program or changes its meaning; `Unknown` takes it out.
    pub fn set_program(&mut self, program: &str, kind: ToolKind) {
        set(&mut self.programs, program, kind);
    }

    /// Adds a tool whose `command` decides; names are compared in lower case.
    pub fn add_shell_tool(&mut self, name: &str) {
        let name = name.to_lowercase().into_boxed_str();
        if !self.shell_tools.contains(&name) {
            self.shell_tools.push(name);
        }
    }

    /// The words and their kinds, in alphabetical order.
    pub fn verbs(&self) -> impl Iterator<Item = (&str, ToolKind)> {
        self.verbs.iter().map(|(word, &kind)| (&**word, kind))
    }

    /// The programs and their kinds, in alphabetical order.
    pub fn programs(&self) -> impl Iterator<Item = (&str, ToolKind)> {
        self.programs.iter().map(|(word, &kind)| (&**word, kind))
    }

    /// The tools whose `command` decides.
    pub fn shell_tools(&self) -> impl Iterator<Item = &str> {
        self.shell_tools.iter().map(|name| &**name)
    }

    /// Whether a tool of this name runs command lines, with or without its server's name.
    #[must_use]
    pub fn is_shell(&self, tool: &str) -> bool {
        let own_name = without_server(tool);
        self.shell_tools
            .iter()
            .any(|shell| shell.eq_ignore_ascii_case(tool) || shell.eq_ignore_ascii_case(own_name))
    }

    /// The kind that a tool's name tells.
    #[must_use]
    pub fn of_name(&self, tool: &str) -> ToolKind {
        let mut first = ToolKind::Unknown;
        for word in name_words(tool) {
            match self.verbs.get(&*word.to_ascii_lowercase()) {
                Some(ToolKind::Poll) => return ToolKind::Poll,
                Some(&kind) if first == ToolKind::Unknown => first = kind,
                _ => {}
            }
        }
        first
    }

    /// The kind of a command line: that of the program in it which does most.
    ///
    /// An empty command waits for the one that runs, and so does one that sleeps and then looks;
    /// output to a file is a write whatever makes it. What stands in quotes or in a here-document
    /// is data.
    #[must_use]
    pub fn of_command(&self, command: &str) -> ToolKind {
        if command.trim().is_empty() {
            return ToolKind::Poll;
        }
        let text = without_quotes(&without_here_document(command)).into_owned();
        if writes_to_file(&text) {
            return ToolKind::Write;
        }
        let mut most = None;
        let mut waits = false;
        let parts = text.split(['|', ';', '\n']);
        let parts = parts.flat_map(|part| part.split("&&"));
        for part in parts.flat_map(|part| part.split(" & ")) {
            let weight = self.of_program(part).map(Weight::from);
            waits |= weight == Some(Weight::Idle);
            most = most.max(weight);
        }
        match most {
            None => ToolKind::Unknown,
            Some(Weight::Read) if waits => ToolKind::Poll,
            Some(weight) => weight.into(),
        }
    }

    /// The kind of one program with its arguments; `None` if it does nothing by itself.
    fn of_program(&self, part: &str) -> Option<ToolKind> {
        let mut words = part
            .split_whitespace()
            .filter(|word| !is_assignment(word))
            .peekable();
        let first = words.next()?;
        if NEUTRAL_PROGRAMS.contains(&first) {
            return None;
        }
        let program = first.rsplit('/').next().unwrap_or(first);
        let next = words.peek().copied();
        let special = match program {
            "sed" if words.any(|word| word.starts_with("-i") || word.starts_with("--in-place")) => {
                ToolKind::Write
            }
            "sed" => ToolKind::Read,
            "git" if next.is_some_and(|word| GIT_READS.contains(&word)) => ToolKind::Read,
            "git" => ToolKind::Write,
            "find" if words.any(|word| FIND_ACTIONS.contains(&word)) => ToolKind::Unknown,
            "curl" if words.any(|word| CURL_SENDS.iter().any(|send| word.starts_with(send))) => {
                ToolKind::Unknown
            }
            _ if INSTALLERS.contains(&program)
                && next.is_some_and(|word| INSTALLER_WRITES.contains(&word)) =>
            {
                ToolKind::Write
            }
            _ => return Some(self.program(program)),
        };
        // A table entry of the user's own is stronger than what is built in.
        let built_in = PROGRAMS
            .iter()
            .find(|(_, names)| names.contains(&program))
            .map_or(ToolKind::Unknown, |&(kind, _)| kind);
        let entry = self.program(program);
        Some(if entry == built_in { special } else { entry })
    }

    fn program(&self, name: &str) -> ToolKind {
        self.programs.get(name).copied().unwrap_or_default()
    }
}

fn set(table: &mut BTreeMap<Box<str>, ToolKind>, word: &str, kind: ToolKind) {
    if kind == ToolKind::Unknown {
        table.remove(word);
    } else {
        table.insert(word.into(), kind);
    }
}

/// How much a program does; the most decides for the whole command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Nothing,
    Idle,
    Read,
    Poll,
    Unknown,
    Write,
}

impl From<ToolKind> for Weight {
    fn from(kind: ToolKind) -> Self {
        match kind {
            ToolKind::Exempt => Self::Nothing,
            ToolKind::Idle => Self::Idle,
            ToolKind::Read => Self::Read,
            ToolKind::Poll => Self::Poll,
            ToolKind::Unknown => Self::Unknown,
            ToolKind::Write => Self::Write,
        }
    }
}

impl From<Weight> for ToolKind {
    fn from(weight: Weight) -> Self {
        match weight {
            Weight::Nothing => Self::Exempt,
            Weight::Idle => Self::Idle,
            Weight::Read => Self::Read,
            Weight::Poll => Self::Poll,
            Weight::Unknown => Self::Unknown,
            Weight::Write => Self::Write,
        }
    }
}

/// A tool's own name, without the names of the server and module before it.
fn without_server(tool: &str) -> &str {
    let name = tool.rsplit(['.', ':', '/']).next().unwrap_or(tool);
    match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__").map_or(rest, |(_, tool)| tool),
        None => name,
    }
}

/// The words of a tool's own name.
///
/// Words end at anything that is no ASCII letter or digit, and where camel case begins a new one.
fn name_words(tool: &str) -> impl Iterator<Item = &str> {
    let name = without_server(tool);
    // No tool is named at such length, and a hostile name must not cost more than that.
    let name = name.get(..256).unwrap_or(name);
    let bytes = name.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !bytes.get(at)?.is_ascii_alphanumeric() {
            at += 1;
        }
        let start = at;
        at = word_end(bytes, start);
        name.get(start..at).filter(|word| !word.is_empty())
    })
}

/// One past the last byte of the word that begins at `start`.
fn word_end(bytes: &[u8], start: usize) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let lower = |at: usize| byte(at).is_ascii_lowercase() || byte(at).is_ascii_digit();
    let mut at = start;
    while byte(at).is_ascii_uppercase() {
        at += 1;
    }
    let capitals = at - start;
    if !lower(at) {
        return at;
    }
    if capitals > 1 && byte(at).is_ascii_lowercase() {
        return at - 1; // `HTTPServer`: the last capital begins the next word
    }
    while lower(at) {
        at += 1;
    }
    at
}

fn is_assignment(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    name.len() < word.len()
        && !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The command without the text of a here-document.
fn without_here_document(command: &str) -> Cow<'_, str> {
    let first_line = command.split('\n').next().unwrap_or(command);
    if let Some((before, after)) = first_line.split_once("<<") {
        return Cow::Owned(format!("{before}{after}"));
    }
    Cow::Borrowed(command.split("<<").next().unwrap_or(command))
}

/// The command with `''` in place of each quoted text.
fn without_quotes(command: &str) -> Cow<'_, str> {
    if !command.contains(['\'', '"']) {
        return Cow::Borrowed(command);
    }
    // Where no further quote of a kind is closed, none of it opens: each is searched at most once
    // more than it is found, so the whole stays linear.
    let mut plain = String::with_capacity(command.len());
    let mut rest = command;
    let mut open = [true, true];
    while let Some(at) = rest.find(['\'', '"']) {
        let double = rest.as_bytes().get(at) == Some(&b'"');
        let (before, quoted) = rest.split_at(at);
        plain.push_str(before);
        let end = if double {
            open[1].then(|| end_of_double_quotes(quoted)).flatten()
        } else {
            open[0]
                .then(|| quoted[1..].find('\'').map(|at| at + 2))
                .flatten()
        };
        if let Some(end) = end {
            plain.push_str("''");
            rest = &quoted[end..];
        } else {
            open[usize::from(double)] = false;
            plain.push_str(&quoted[..1]);
            rest = &quoted[1..];
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// One past the closing quote of a text that begins with `"`.
fn end_of_double_quotes(quoted: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in quoted.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether output goes to a file; `/dev/null`, other streams, arrows and comparisons are none.
fn writes_to_file(command: &str) -> bool {
    let bytes = command.as_bytes();
    let mut from = 0;
    while let Some(found) = command.get(from..).and_then(|rest| rest.find('>')) {
        let at = from + found;
        let arrows = command[at..]
            .bytes()
            .take_while(|&byte| byte == b'>')
            .count();
        from = at + arrows;
        let target = command[from..].trim_start();
        let to_nowhere = ["/dev/null", "&1", "&2"]
            .iter()
            .any(|sink| target.starts_with(sink));
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let is_arrow = arrows == 1 && matches!(before, Some(b'-' | b'='));
        if !to_nowhere && !is_arrow {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tool: &str) -> Vec<&str> {
        name_words(tool).collect()
    }

    #[test]
    fn names_split_at_case_and_at_signs_and_lose_their_server() {
        assert_eq!(words("get_issue"), ["get", "issue"]);
        assert_eq!(words("mcp__output__writeFile"), ["write", "File"]);
        assert_eq!(words("browser.readHTTPBody2"), ["read", "HTTP", "Body2"]);
        assert_eq!(words("a:B-c"), ["B", "c"]);
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words("工具"), [""; 0]);
    }

    #[test]
    fn a_poll_word_counts_anywhere_and_else_the_first_verb() {
        let tables = KindTables::default();
        for (name, kind) in [
            ("write_status", ToolKind::Poll),
            ("findAndReplace", ToolKind::Read),
            ("update_search_index", ToolKind::Write),
            ("think", ToolKind::Idle),
            ("frobnicate", ToolKind::Unknown),
            ("setup", ToolKind::Unknown),
        ] {
            assert_eq!(tables.of_name(name), kind, "{name}");
        }
    }

    #[test]
    fn a_command_is_what_its_boldest_program_is() {
        let tables = KindTables::default();
        for (command, kind) in [
            ("", ToolKind::Poll),
            ("  \n", ToolKind::Poll),
            ("sleep 5", ToolKind::Idle),
            ("sleep 5; tail -1 log", ToolKind::Poll),
            ("sleep 5 && make", ToolKind::Unknown),
            ("cd /x && ls -l | grep a", ToolKind::Read),
            ("cd /x", ToolKind::Unknown),
            ("ls 2>&1", ToolKind::Read),
            ("sleep 9 & rm x", ToolKind::Write),
            ("ls || true", ToolKind::Read),
            ("pytest -q 2>&1 | tail -3", ToolKind::Unknown),
            ("cat a > b", ToolKind::Write),
            ("cat a 2>/dev/null", ToolKind::Read),
            ("grep '->' a; grep \">\" b", ToolKind::Read),
            ("cat <<'E' > f\nrm x\nE", ToolKind::Write),
            ("sed -n 1,5p a", ToolKind::Read),
            ("sed -i s/a/b/ a", ToolKind::Write),
            ("git log", ToolKind::Read),
            ("git push", ToolKind::Write),
            ("find . -exec rm {} +", ToolKind::Unknown),
            ("curl -s x", ToolKind::Read),
            ("curl -XPOST x", ToolKind::Unknown),
            ("pip install x", ToolKind::Write),
            ("A=1 /usr/bin/cat x", ToolKind::Read),
            ("echo \"a 'b\" 'c > d'", ToolKind::Read),
        ] {
            assert_eq!(tables.of_command(command), kind, "{command:?}");
        }
    }

    #[test]
    fn unclosed_quotes_by_the_thousand_cost_linear_time() {
        let command = "\"\\'".repeat(200_000);
        assert_eq!(
            KindTables::default().of_command(&command),
            ToolKind::Unknown
        );
    }

    #[test]
    fn hints_of_a_server_are_stronger_than_verbs_but_leave_polls_alone() {
        let read_only = Annotations {
            read_only: Some(true),
            ..Annotations::default()
        };
        assert_eq!(read_only.kind(ToolKind::Write), Some(ToolKind::Read));
        assert_eq!(read_only.kind(ToolKind::Poll), Some(ToolKind::Poll));
        let idempotent = Annotations {
            idempotent: Some(true),
            ..Annotations::default()
        };
        assert_eq!(idempotent.kind(ToolKind::Read), Some(ToolKind::Write));
        assert_eq!(Annotations::default().kind(ToolKind::Read), None);
    }

    #[test]
    fn tables_can_be_changed() {
        let mut tables = KindTables::default();
        tables.set_verb("frob", ToolKind::Write);
        tables.set_verb("get", ToolKind::Unknown);
        tables.set_program("pytest", ToolKind::Read);
        tables.set_program("git", ToolKind::Read);
        tables.set_program("squeue", ToolKind::Poll);
        tables.add_shell_tool("Console");
        assert_eq!(tables.of_name("frob_get"), ToolKind::Write);
        assert_eq!(tables.of_name("get_it"), ToolKind::Unknown);
        assert_eq!(tables.of_command("pytest | tail"), ToolKind::Read);
        assert_eq!(tables.of_command("git push"), ToolKind::Read);
        assert_eq!(tables.of_command("squeue -u me | head -3"), ToolKind::Poll);
        for shell in ["console", "mcp__box__console", "box.Console", "Bash"] {
            assert!(tables.is_shell(shell), "{shell}");
        }
        assert!(!tables.is_shell("console_log"));
    }
}
