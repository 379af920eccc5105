//! What a line is, told by how it begins: where rows are alike by nature, repetition says little.

/// Bytes of a line that are looked at.
pub(super) const HEAD: usize = 24;

/// What a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Text in sentences.
    #[default]
    Prose,
    /// An item of a list, or a line that counts: `- a`, `3. b`, `Step 4`, `c)`.
    Item,
    /// A heading, a quotation, a remark.
    Row,
    /// Of a table, or code.
    Form,
    /// The first or last line of a code fence, made of so many of these.
    Fence(u8, usize),
}

/// What the line is that begins like this, after a line of the kind `before`.
pub(super) fn kind_of(head: &[u8], before: LineKind) -> LineKind {
    let text = head.trim_ascii_start();
    let indent = head.len() - text.len();
    let has_tab = head.iter().take(indent).any(|&byte| byte == b'\t');
    if text.starts_with(b"```") || text.starts_with(b"~~~") {
        let of = text.first().copied().unwrap_or_default();
        let length = text.iter().take_while(|&&byte| byte == of).count();
        return LineKind::Fence(of, length);
    }
    if indent >= 2 && before == LineKind::Item {
        return LineKind::Item;
    }
    if indent >= 4 || has_tab {
        return LineKind::Form;
    }
    let text = text.strip_prefix(b"> ").unwrap_or(text);
    let text = after_content_key(text).unwrap_or(text);
    let text = after_tag(text).unwrap_or(text);
    if is_bullet(text) {
        return LineKind::Item;
    }
    let marks = text.iter().take_while(|&&byte| matches!(byte, b'*' | b'_'));
    let text = text.get(marks.count()..).unwrap_or_default();
    match text {
        [
            b'|' | b'<' | b'{' | b'}' | b'[' | b']' | b'@' | b'$' | b';' | b'\\' | b'=',
            ..,
        ]
        | [b'/', b'/' | b'*', ..] => LineKind::Form,
        [b'"' | b'\'' | b'(' | b'/' | b'#' | b'>', ..] => LineKind::Row,
        [first, b'.' | b')' | b':', ..] if first.is_ascii_alphanumeric() => LineKind::Item,
        [first, ..] if first.is_ascii_digit() => LineKind::Item,
        _ if counts(text) => LineKind::Item,
        _ => LineKind::Prose,
    }
}

/// What follows the key `content` in the first line of workflow JSON: that string is text.
fn after_content_key(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"{").unwrap_or(text).trim_ascii_start();
    let text = text.strip_prefix(b"\"content\"")?.trim_ascii_start();
    let text = text.strip_prefix(b":")?.trim_ascii_start();
    text.strip_prefix(b"\"")
}

/// The words behind a tag with nothing but a name, such as `<think>` or `[THINK]`.
fn after_tag(text: &[u8]) -> Option<&[u8]> {
    let close = match text.first()? {
        b'<' => b'>',
        b'[' => b']',
        _ => return None,
    };
    let end = text.iter().position(|&byte| byte == close)?;
    let (tag, words) = text.split_at_checked(end + 1)?;
    let name = tag.get(1..end)?;
    let is_name = name.iter().all(u8::is_ascii_alphabetic);
    let begins_word = words.first().is_some_and(|&byte| {
        byte.is_ascii_alphabetic() || byte >= 0x80 || b"\"'(*".contains(&byte)
    });
    (is_name && begins_word && !words.contains(&b'<')).then_some(words)
}

fn is_bullet(text: &[u8]) -> bool {
    let bullets: [&[u8]; 8] = [
        b"- ",
        b"* ",
        b"+ ",
        "•".as_bytes(),
        "– ".as_bytes(),
        "— ".as_bytes(),
        "◦".as_bytes(),
        "▪".as_bytes(),
    ];
    bullets.iter().any(|bullet| text.starts_with(bullet))
}

/// Whether a number is, or ends, one of the first two words, as in `Step 4`, `Item #4`, `row12`;
/// where words are not parted, it follows on three characters at most, as in `步骤4`.
fn counts(text: &[u8]) -> bool {
    const PARTED_BY_NOTHING: std::ops::RangeInclusive<u8> = 0xE3..=0xE9;
    if text
        .first()
        .is_some_and(|first| PARTED_BY_NOTHING.contains(first))
    {
        let head = text.get(..10).unwrap_or(text);
        return head.iter().any(u8::is_ascii_digit);
    }
    let mut words = text.split(|&byte| byte == b' ');
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    let is_number = |word: &[u8]| word.first().is_some_and(u8::is_ascii_digit);
    let second = second.strip_prefix(b"#").unwrap_or(second);
    first.iter().any(u8::is_ascii_digit) || is_number(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> LineKind {
        let head = line.as_bytes();
        kind_of(head.get(..HEAD).unwrap_or(head), LineKind::Prose)
    }

    #[test]
    fn lines_are_told_by_how_they_begin() {
        for line in [
            "I will look at it.",
            "A cat sat.",
            "**Note** that",
            "Über alles",
        ] {
            assert_eq!(kind(line), LineKind::Prose, "{line}");
        }
        for line in [
            "- a",
            "* b",
            "3. c",
            "17) d",
            "a) e",
            "Step 4: f",
            "• g",
            "**Day 2**",
            "Q7: h",
        ] {
            assert_eq!(kind(line), LineKind::Item, "{line}");
        }
        for line in [
            "| a | b |",
            "    x = 1",
            "\tx",
            "{",
            "</p>",
            "<li>a</li>",
            "// a",
        ] {
            assert_eq!(kind(line), LineKind::Form, "{line}");
        }
        assert_eq!(kind("```python"), LineKind::Fence(b'`', 3));
        assert_eq!(kind("  ~~~"), LineKind::Fence(b'~', 3));
        assert_eq!(kind("## A heading"), LineKind::Row);
        assert_eq!(kind("<think>\"Again,\" he said"), LineKind::Row);
        assert_eq!(kind("<think>So, again and again"), LineKind::Prose);
        assert_eq!(kind_of(b"   more of it", LineKind::Item), LineKind::Item);
    }
}
