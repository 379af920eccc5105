//! Writes compact JSON: for values that come as data.

/// Adds a string as a JSON string literal. Linear; escapes only what JSON demands.
pub fn push_string(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    while let Some(offset) = rest
        .bytes()
        .position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        let (plain, special) = rest.split_at(offset);
        json.push_str(plain);
        let byte = special.bytes().next().unwrap_or_default();
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            0x08 => json.push_str("\\b"),
            0x0c => json.push_str("\\f"),
            byte => {
                json.push_str("\\u00");
                for digit in [byte >> 4, byte & 15] {
                    json.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
                }
            }
        }
        rest = special.get(1..).unwrap_or_default();
    }
    json.push_str(rest);
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::push_string;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_string_reads_back_as_itself(text in ".*|[\\x00-\\x7f]*") {
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
