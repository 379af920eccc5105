//! The markers of reasoning blocks and of the wrappers that models put around their answer.

/// How one family of models marks its reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasoningTags {
    /// Opens a block.
    pub open: &'static str,
    /// Closes it.
    pub close: &'static str,
}

const fn tags(open: &'static str, close: &'static str) -> ReasoningTags {
    ReasoningTags { open, close }
}

/// The reasoning blocks that are known, one family of models each.
///
/// A tag ends in `>` and is read whatever its case; Hunyuan's suffix (`<think:fast>`) counts too.
pub const REASONING: &[ReasoningTags] = &[
    tags("<think>", "</think>"),
    tags("<thinking>", "</thinking>"),
    tags("<thought>", "</thought>"),
    tags("<reasoning>", "</reasoning>"),
    tags("<reflection>", "</reflection>"),
    tags("<scratch_pad>", "</scratch_pad>"),
    tags("<scratchpad>", "</scratchpad>"),
    tags("[THINK]", "[/THINK]"),
    tags("<seed:think>", "</seed:think>"),
    tags("<mm:think>", "</mm:think>"),
    tags("◁think▷", "◁/think▷"),
    tags("<|START_THINKING|>", "<|END_THINKING|>"),
    tags("<|channel>thought", "<channel|>"),
    tags("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    tags("<ifm|think>", "</ifm|think>"),
    tags("<ifm|think_fast>", "</ifm|think_fast>"),
    tags("<ifm|think_faster>", "</ifm|think_faster>"),
    tags("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
];

/// A wrapper around the answer, dropped only directly after reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// Opens the answer.
    pub open: &'static str,
    /// Closes it.
    pub close: &'static str,
    /// Special tokens are dropped wherever they stand, words of a language are not.
    pub always: bool,
}

/// The wrappers that are known.
pub const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        open: "<answer>",
        close: "</answer>",
        always: false,
    },
    Wrapper {
        open: "<response>",
        close: "</response>",
        always: false,
    },
    Wrapper {
        open: "<|START_RESPONSE|>",
        close: "<|END_RESPONSE|>",
        always: true,
    },
    Wrapper {
        open: "<|START_TEXT|>",
        close: "<|END_TEXT|>",
        always: true,
    },
    Wrapper {
        open: "<|open|>response<|sep|>",
        close: "<|close|>response<|sep|>",
        always: true,
    },
];

/// Phrases that open reasoning where a reply begins, each with the one that must follow it.
pub const PREFACES: &[(&str, &str)] = &[
    ("Here is my thought process:", "Here is my response:"),
    ("Here's my thought process:", "Here's my response:"),
];
