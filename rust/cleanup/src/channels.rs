//! The tokens of models that write messages on channels (gpt-oss, Muse).
//!
//! ```text
//! <|start|>assistant to=functions.ping<|channel|>commentary <|constrain|>json<|message|>{}<|call|>
//! ```
//! A header says who speaks to whom and on which channel; what follows `<|message|>` is reasoning
//! on the analysis channel, a call when there is a recipient, and text otherwise.

/// What a token of a channel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelToken {
    /// Begins a header, or the next part of one.
    Header,
    /// Ends a header: the message follows.
    Message,
    /// Ends a message.
    End,
}

/// All tokens of channels.
pub const CHANNEL_TOKENS: &[(&str, ChannelToken)] = &[
    ("<|start|>", ChannelToken::Header),
    ("<|channel|>", ChannelToken::Header),
    ("<|constrain|>", ChannelToken::Header),
    ("<|message|>", ChannelToken::Message),
    ("<|end|>", ChannelToken::End),
    ("<|call|>", ChannelToken::End),
    ("<|return|>", ChannelToken::End),
    ("<|eom|>", ChannelToken::End),
];

/// What a message is, by its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Visible text.
    Text,
    /// Reasoning.
    Reasoning,
    /// For this recipient.
    To(&'a str),
}

/// Reads a header: everything between the first token and `<|message|>`.
///
/// A recipient (`to=`) may stand in any part of it; that a model talks to itself is reasoning.
#[must_use]
pub fn message_of(header: &str) -> Message<'_> {
    let recipient = header.rfind("to=").and_then(|at| {
        let before = header.get(..at)?.chars().next_back();
        let free = before.is_none_or(|c| c.is_whitespace() || c == '>');
        let name = header.get(at + 3..)?;
        let end = name
            .find(|c: char| c.is_whitespace() || c == '<')
            .unwrap_or(name.len());
        name.get(..end).filter(|name| free && !name.is_empty())
    });
    let is_analysis = || {
        let channel = header.rsplit("<|channel|>").next().unwrap_or_default();
        channel.trim_start().starts_with("analysis")
    };
    match recipient {
        Some("self") => Message::Reasoning,
        Some("user" | "all" | "assistant") => Message::Text,
        Some(name) => Message::To(name),
        None if is_analysis() => Message::Reasoning,
        None => Message::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_a_message_is() {
        for (header, message) in [
            ("analysis", Message::Reasoning),
            ("<|channel|>analysis", Message::Reasoning),
            ("<|start|>assistant<|channel|>final", Message::Text),
            ("<|channel|>commentary", Message::Text),
            (
                "<|channel|>commentary to=functions.ping <|constrain|>json",
                Message::To("functions.ping"),
            ),
            (
                "<|start|>assistant to=functions.ping<|channel|>commentary",
                Message::To("functions.ping"),
            ),
            (
                "<|channel|>analysis to=functions.search code",
                Message::To("functions.search"),
            ),
            (" to=self", Message::Reasoning),
        ] {
            assert_eq!(message_of(header), message, "{header}");
        }
    }
}
