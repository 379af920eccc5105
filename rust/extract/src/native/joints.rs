//! Where pieces of text and of reasoning meet: blocks are kept apart, and reasoning is trimmed,
//! while it streams.

/// Joins blocks of text: a blank line stands between two that something else kept apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextJoint {
    /// Whether the text so far ends in white space; `None` before the first text.
    ends_in_space: Option<bool>,
    broken: bool,
}

impl TextJoint {
    /// The next text is of another block.
    pub(crate) fn break_off(&mut self) {
        self.broken = true;
    }

    /// What has to stand before the next text, which is not empty.
    pub(crate) fn before(&mut self, text: &str) -> &'static str {
        let begins_with_space = text.starts_with(char::is_whitespace);
        let apart = self.broken && self.ends_in_space == Some(false) && !begins_with_space;
        self.broken = false;
        self.ends_in_space = Some(text.ends_with(char::is_whitespace));
        if apart { "\n\n" } else { "" }
    }
}

/// Joins blocks of reasoning by newlines, each trimmed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReasoningJoint {
    /// Whether anything was said before this block.
    any: bool,
    /// Whether this block has begun.
    begun: bool,
    /// White space that is left out when nothing follows.
    held: String,
}

impl ReasoningJoint {
    /// The next reasoning is of another block.
    pub(crate) fn break_off(&mut self) {
        self.begun = false;
        self.held.clear();
    }

    /// Takes the next reasoning and adds to `out` what can be said of it by now.
    pub(crate) fn join(&mut self, text: &str, out: &mut String) {
        let text = if self.begun { text } else { text.trim_start() };
        if text.is_empty() {
            return;
        }
        if !self.begun && self.any {
            out.push('\n');
        }
        self.begun = true;
        self.any = true;
        let body = text.trim_end();
        if !body.is_empty() {
            out.push_str(&self.held);
            self.held.clear();
            out.push_str(body);
        }
        self.held
            .push_str(text.get(body.len()..).unwrap_or_default());
    }

    /// Takes reasoning that is already trimmed and joined, from elsewhere, where `goes_on` says
    /// that the piece before came from there too.
    pub(crate) fn pass(&mut self, text: &str, goes_on: bool, out: &mut String) {
        if self.any && !goes_on {
            out.push('\n');
        }
        self.any = true;
        self.break_off();
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(blocks: &[Vec<String>]) -> String {
        let mut joint = ReasoningJoint::default();
        let mut out = String::new();
        for block in blocks {
            joint.break_off();
            for part in block {
                joint.join(part, &mut out);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn blocks_of_reasoning_are_trimmed_and_joined_however_they_are_cut(
            blocks in proptest::collection::vec(
                proptest::collection::vec("[ab \\n]{0,3}", 0..5), 0..5),
        ) {
            let naive: Vec<String> = blocks
                .iter()
                .map(|block| block.concat().trim().to_owned())
                .filter(|block| !block.is_empty())
                .collect();
            prop_assert_eq!(joined(&blocks), naive.join("\n"));
        }

        #[test]
        fn text_that_was_not_broken_off_is_joined_as_it_is(
            parts in proptest::collection::vec("[a \\n]{1,3}", 0..6),
        ) {
            let mut joint = TextJoint::default();
            let mut joined = String::new();
            for part in &parts {
                joined.push_str(joint.before(part));
                joined.push_str(part);
            }
            prop_assert_eq!(joined, parts.concat());
        }
    }

    #[test]
    fn blocks_of_text_are_kept_apart_unless_they_are_already() {
        let mut joint = TextJoint::default();
        joint.break_off();
        assert_eq!(joint.before("Let me look."), "");
        joint.break_off();
        assert_eq!(joint.before("Found it. "), "\n\n");
        joint.break_off();
        assert_eq!(joint.before("Done"), "");
        assert_eq!(joint.before("."), "");
    }
}
