//! Whether the backslashes of a string are a path's.

/// The longest name of a server.
const MAX_NAME: usize = 255;

/// Whether the text begins as the name of a share does: `\\\\server\`.
pub(super) fn is_share(text: &str) -> bool {
    let server = text.strip_prefix("\\\\").unwrap_or_default();
    // This is asked at every bad escape, so no more is looked at than a name can hold.
    let head = server.as_bytes().get(..MAX_NAME + 1);
    let head = head.unwrap_or(server.as_bytes());
    let end = memchr::memchr(b'\\', head).unwrap_or(head.len());
    end <= MAX_NAME && is_name(server.get(..end).unwrap_or_default())
}

fn is_drive(bytes: &[u8], colon: usize) -> bool {
    let Some(letter) = colon.checked_sub(1) else {
        return false;
    };
    let starts_word = letter
        .checked_sub(1)
        .and_then(|before| bytes.get(before))
        .is_none_or(|byte| !byte.is_ascii_alphanumeric());
    starts_word && bytes.get(letter).is_some_and(u8::is_ascii_alphabetic)
}

/// Whether the text ends in a drive letter, its colon and a backslash.
pub(super) fn ends_in_drive(body: &str) -> bool {
    let bytes = body.as_bytes();
    bytes.ends_with(b":\\") && is_drive(bytes, bytes.len() - 2)
}

/// Whether the text up to a backslash may be the beginning of a path.
pub(super) fn begins(body: &str) -> bool {
    let head = body.strip_suffix('\\').unwrap_or(body);
    head.len() <= 64 && head.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'%' | b'$')
        || byte >= 0x80
}

/// Whether the whole text is names of two characters or more with single backslashes between.
pub(super) fn is_relative(body: &str) -> bool {
    let mut names = body.split('\\');
    let head = names.next().unwrap_or_default();
    let head_fits = matches!(head, "." | ".." | "~") || is_name(head);
    head_fits && names.all(is_name)
}

fn is_name(name: &str) -> bool {
    name.len() >= 2 && name.bytes().all(is_name_byte) && !name.starts_with('.')
}

/// Whether text that follows the beginning of a relative path may still belong to it.
pub(super) fn may_go_on(text: &str) -> bool {
    text.bytes().all(|byte| is_name_byte(byte) || byte == b'\\')
}
