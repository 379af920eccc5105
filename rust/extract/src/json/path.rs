//! Whether the backslashes of a string are a path's.

/// Where a drive letter with its colon and backslash begins (`C:\`), at the start of a word.
pub(super) fn drive(body: &str) -> Option<usize> {
    let bytes = body.as_bytes();
    if bytes.starts_with(b"\\\\") && bytes.get(2).is_none_or(u8::is_ascii_alphanumeric) {
        return Some(0);
    }
    let found = memchr::memmem::find_iter(bytes, b":\\").find(|&colon| is_drive(bytes, colon));
    found.map(|colon| colon - 1)
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
