//! From the name of a model to the formats that it uses.
//!
//! Names come with organisations, sizes and quantisations around them
//! (`unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF`, `qwen3-coder:30b-q4_K_M`). Each format names its
//! models; a name belongs to the model that is found in it first, and of those that begin at the
//! same place to the longest: `Hermes-3-Llama-3.1-8B` is a Hermes, `DeepSeek-R1-Distill-Qwen-7B` a
//! Qwen, since distillation keeps the base model's template. Cost: the name's length times the number of models known.

use std::cmp::Reverse;

use crate::formats::{Format, formats};

/// The formats of one family of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFormats {
    /// The model's name as the formats know it, such as `Qwen3-Coder`.
    pub model: &'static str,
    /// The labels of its formats.
    pub labels: Vec<&'static str>,
    /// Whether the chat template opens a block of reasoning, so that replies begin in it.
    pub reasoning_open: bool,
}

/// Models whose own chat templates end the prompt with the opening tag of reasoning, so that replies
/// hold the closing tag alone. Those that write both tags, or leave it to a switch, are not here.
const OPENS_REASONING: &[&str] = &[
    "DeepSeek R1",
    "ERNIE Thinking",
    "MiniMax M2",
    "MiniMax M2.1",
    "MiniMax M2.5",
    "Qwen3 Thinking",
    "QwQ",
];

/// How well a model fits a name: the smaller, the better.
type Rank = (usize, Reverse<usize>);

/// The formats of the model with this name; None when no format knows it.
///
/// ```
/// use turnwarden_extract::formats_for_model;
///
/// let found = formats_for_model("NousResearch/Hermes-3-Llama-3.1-8B-GGUF").unwrap();
/// assert_eq!((found.model, found.labels), ("Hermes", vec!["hermes"]));
/// assert!(formats_for_model("some-new-model").is_none());
/// ```
#[must_use]
pub fn formats_for_model(name: &str) -> Option<ModelFormats> {
    let name = plain(name);
    let mut fitting: Vec<(Rank, &'static str, &'static Format)> = Vec::new();
    for format in formats() {
        let models = format.models.iter();
        let best = models.filter_map(|model| Some((rank(&name, model)?, model.as_str())));
        if let Some((rank, model)) = best.min_by_key(|(rank, _)| *rank) {
            fitting.push((rank, model, format));
        }
    }
    let (best, model, _) = *fitting.iter().min_by_key(|(rank, ..)| *rank)?;
    fitting.retain(|(rank, ..)| *rank == best);
    Some(ModelFormats {
        model,
        labels: fitting
            .iter()
            .map(|(.., format)| format.label.as_str())
            .collect(),
        reasoning_open: fitting.iter().any(|(.., format)| format.reasoning_open)
            || OPENS_REASONING
                .iter()
                .any(|model| rank(&name, model).is_some()),
    })
}

/// Names of known models that look like this one, the most alike first; at most three.
#[must_use]
pub fn similar_models(name: &str) -> Vec<&'static str> {
    let name = name.rsplit('/').next().unwrap_or_default();
    let mut alike: Vec<(usize, &'static str)> = Vec::new();
    for model in formats().iter().flat_map(|format| &format.models) {
        let likeness = likeness(name, model);
        let known = alike.iter().any(|(_, known)| known == model);
        if likeness >= ALIKE && !known {
            alike.push((likeness, model));
        }
    }
    alike.sort_by_key(|(likeness, model)| (Reverse(*likeness), *model));
    alike.into_iter().take(3).map(|(_, model)| model).collect()
}

/// The likeness from which on names are alike.
const ALIKE: usize = 50;

/// How many in a hundred pairs of neighbouring letters the beginnings of two names share.
fn likeness(name: &str, model: &str) -> usize {
    let letters = |text: &str, most: usize| -> Vec<char> {
        let kept = text.chars().filter(|c| c.is_alphanumeric());
        kept.flat_map(char::to_lowercase).take(most).collect()
    };
    let model = letters(model, 64);
    let name = letters(name, model.len() + 2);
    let pairs = |text: &[char]| -> Vec<(char, char)> {
        text.iter()
            .copied()
            .zip(text.iter().copied().skip(1))
            .collect()
    };
    let (ours, mut theirs) = (pairs(&model), pairs(&name));
    let all = ours.len() + theirs.len();
    let mut shared = 0_usize;
    for pair in ours {
        if let Some(at) = theirs.iter().position(|other| *other == pair) {
            theirs.swap_remove(at);
            shared += 2;
        }
    }
    (shared * 100).checked_div(all).unwrap_or(0)
}

/// Where in a name the words of a model begin, and how long they are; None unless all of them
/// stand in it, in order, each number right behind the word before it: `gemma-3-4b` is no Gemma 4.
fn rank(name: &str, model: &str) -> Option<Rank> {
    let model = model.to_lowercase();
    let mut words = model.split_whitespace();
    let first = words.next()?;
    let letters = model.bytes().filter(u8::is_ascii_alphanumeric).count();
    let mut from = 0;
    loop {
        let (start, end) = find_word(name, from, first)?;
        match follow(name, end, words.clone()) {
            Follow::All => return Some((start, Reverse(letters))),
            Follow::NotHere => from = start + 1,
            Follow::Nowhere => return None,
        }
    }
}

/// Whether words follow in a name.
enum Follow {
    All,
    NotHere,
    /// Nor behind any later place.
    Nowhere,
}

fn follow<'a>(name: &str, mut at: usize, words: impl Iterator<Item = &'a str>) -> Follow {
    for word in words {
        let number = word.starts_with(|first: char| first.is_ascii_digit());
        let end = if number {
            number_end(name.as_bytes(), at, word)
        } else {
            match find_word(name, at, word) {
                Some((_, end)) => Some(end),
                None => return Follow::Nowhere,
            }
        };
        match end {
            Some(end) => at = end,
            None => return Follow::NotHere,
        }
    }
    Follow::All
}

/// One past a number that follows at `at`, perhaps behind a `v`, and is no size such as `4b`.
fn number_end(name: &[u8], at: usize, number: &str) -> Option<usize> {
    let rest = name.get(at..)?;
    let between = |byte: &&u8| is_separator(**byte);
    let mut start = at + rest.iter().take_while(between).count();
    if name.get(start) == Some(&b'v') {
        start += 1;
    }
    let end = word_end(name, start, number)?;
    let is_version = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let unit = name.get(end..)?;
    let unit = unit.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let unit = name.get(end..end + unit)?;
    let is_size = is_version && matches!(unit, b"b" | b"bit" | b"k" | b"m");
    (!is_size).then_some(end)
}

/// How many letters of a name are looked at.
const LONGEST_NAME: usize = 512;

/// A model's name without what stands before it, in small letters, and with points for those that
/// hosts write as `3p1`.
fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut plain = String::with_capacity(name.len());
    let mut rest = name.chars().take(LONGEST_NAME).peekable();
    while let Some(letter) = rest.next() {
        let before = plain.ends_with(|before: char| before.is_ascii_digit());
        let after = rest.peek().is_some_and(char::is_ascii_digit);
        plain.push(if letter == 'p' && before && after {
            '.'
        } else {
            letter
        });
    }
    plain
}

/// The first place from `from` on where a word stands, whatever separates its parts.
fn find_word(name: &str, from: usize, word: &str) -> Option<(usize, usize)> {
    let bytes = name.as_bytes();
    (from..bytes.len())
        .filter(|start| !joined(bytes, *start))
        .find_map(|start| Some((start, word_end(bytes, start, word)?)))
}

/// One past a word that begins at `start`, when it does and ends where the name's word ends.
fn word_end(name: &[u8], start: usize, word: &str) -> Option<usize> {
    let mut at = start;
    for wanted in word.bytes().filter(|byte| !is_separator(*byte)) {
        while at > start && name.get(at).copied().is_some_and(is_separator) {
            at += 1;
        }
        if *name.get(at)? != wanted {
            return None;
        }
        at += 1;
    }
    (!joined(name, at)).then_some(at)
}

/// Whether the bytes before and at `at` belong to one word: both letters, or both digits.
fn joined(name: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| name.get(before));
    match (before, name.get(at)) {
        (Some(before), Some(after)) => {
            before.is_ascii_digit() && after.is_ascii_digit()
                || before.is_ascii_alphabetic() && after.is_ascii_alphabetic()
        }
        _ => false,
    }
}

fn is_separator(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str) -> Vec<&'static str> {
        formats_for_model(name).map_or_else(Vec::new, |found| found.labels)
    }

    #[test]
    fn organisations_sizes_and_quantisations_do_not_matter() {
        for name in [
            "Qwen2.5",
            "Qwen/Qwen2.5-7B-Instruct",
            "bartowski/Qwen2.5-Coder-32B-Instruct-GGUF",
            "qwen2.5:14b-instruct-q4_K_M",
            "accounts/x/models/qwen-2.5-72b",
        ] {
            assert_eq!(labels(name), ["hermes"], "{name}");
        }
        assert_eq!(labels("microsoft/Phi-4-mini-instruct"), ["phi4_mini"]);
        assert_eq!(labels("phi4-mini:3.8b"), ["phi4_mini"]);
    }

    #[test]
    fn a_fine_tune_has_the_format_of_its_own_name() {
        assert_eq!(labels("NousResearch/Hermes-3-Llama-3.1-8B"), ["hermes"]);
    }

    #[test]
    fn the_longest_name_that_fits_counts() {
        assert_eq!(labels("c4ai-command-r7b-12-2024"), ["cohere_command"]);
        assert_eq!(labels("c4ai-command-r-plus"), ["cohere_command_r"]);
        assert_eq!(labels("ibm-granite/granite-3.1-8b-instruct"), ["granite"]);
        assert_eq!(labels("ibm-granite/granite-4.0-h-small"), ["granite4"]);
    }

    #[test]
    fn reasoning_is_open_where_the_template_opens_it() {
        let opens = |name: &str| formats_for_model(name).is_some_and(|found| found.reasoning_open);
        for name in [
            "Qwen/Qwen3-235B-A22B-Thinking-2507",
            "Qwen/QwQ-32B",
            "deepseek-ai/DeepSeek-R1-0528",
            "deepseek-r1:7b",
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
            "MiniMaxAI/MiniMax-M2",
            "baidu/ERNIE-4.5-21B-A3B-Thinking",
        ] {
            assert!(opens(name), "{name}");
        }
        for name in [
            "Qwen/Qwen3-235B-A22B-Instruct-2507",
            "Qwen/Qwen3-8B",
            "Qwen/Qwen2.5-7B-Instruct",
            "deepseek-ai/DeepSeek-V3.1",
            "openai/gpt-oss-120b",
            "MiniMaxAI/MiniMax-M1-80k",
        ] {
            assert!(!opens(name), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_nearly_known_is_told() {
        assert!(similar_models("Qwenn2.5-7B").contains(&"Qwen2.5"));
        assert!(similar_models("org/mixtrl-8x7b").contains(&"Mixtral"));
        assert!(similar_models("my-own-model").is_empty());
        assert!(similar_models("").is_empty());
    }

    #[test]
    fn a_size_is_no_version_and_a_version_stands_behind_its_name() {
        for name in ["google/gemma-3-4b-it", "gemma3:4b", "gemma-3n-E4B-it"] {
            assert_eq!(labels(name), ["pythonic/gemma3"], "{name}");
        }
        assert_eq!(labels("granite-3.3-4b"), ["granite"]);
        assert_eq!(labels("x/gemma-4-E4B-it"), ["gemma4"]);
        for name in [
            "gemma-2-4bit",
            "granite-8b-code-4k",
            "hunyuan-a3b",
            "granite-3b-code",
        ] {
            assert_eq!(labels(name), [] as [&str; 0], "{name}");
        }
        assert_eq!(labels("meta-llama_llama-3.1-8b"), ["llama3_json"]);
    }

    #[test]
    fn versions_may_be_written_without_a_point() {
        assert_eq!(
            labels("accounts/x/models/llama-v3p1-8b-instruct"),
            ["llama3_json"]
        );
        assert_eq!(labels("deepseek-v3p1"), ["deepseek_v31"]);
        assert_eq!(labels("glm-4p5"), ["glm45"]);
        assert_eq!(labels("qwen2p5-72b-instruct"), ["hermes"]);
    }

    #[test]
    fn part_of_a_word_or_number_is_no_match() {
        assert_eq!(labels("granite-30b"), [] as [&str; 0]);
        assert_eq!(labels("hermestic"), [] as [&str; 0]);
        assert_eq!(labels(""), [] as [&str; 0]);
        assert_eq!(labels("///"), [] as [&str; 0]);
        assert_eq!(labels("猫"), [] as [&str; 0]);
    }
}
