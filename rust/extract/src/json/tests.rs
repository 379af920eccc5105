//! The shared vectors, whole and in pieces, and the laws of the reader.

use super::*;
use serde_json::Value;

/// Reads `text` in the given pieces.
fn read_pieces(text: &str, options: &ReaderOptions, cuts: &[usize]) -> (Status, Reader) {
    let mut reader = Reader::new(options.clone(), 0);
    let mut settled = String::new();
    for &cut in cuts {
        let status = reader.read(&text[..cut], false);
        assert!(
            reader.output().starts_with(&settled),
            "settled output changed: {settled:?} is no prefix of {:?} in {text:?}",
            reader.output(),
        );
        settled = reader.output()[..reader.settled()].to_owned();
        if status != Status::NeedMore {
            break;
        }
    }
    let status = reader.read(text, true);
    assert!(
        reader.output().starts_with(&settled),
        "settled output changed in {text:?}"
    );
    (status, reader)
}

fn document() -> ReaderOptions {
    ReaderOptions {
        mode: Mode::Document,
        ..ReaderOptions::default()
    }
}

fn boundaries(text: &str) -> Vec<usize> {
    (1..text.len())
        .filter(|&at| text.is_char_boundary(at))
        .collect()
}

/// Compares as Python does, where `1.0 == 1` and the last of equal keys wins.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let (left, right) = (left.to_string(), right.to_string());
            left == right
                || left.parse::<f64>().unwrap().to_bits() == right.parse::<f64>().unwrap().to_bits()
                    && (left.contains(['.', 'e', 'E']) || right.contains(['.', 'e', 'E']))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, l)| right.get(key).is_some_and(|r| same(l, r)))
        }
        _ => left == right,
    }
}

#[test]
fn vectors_heal_to_what_they_say() {
    let mut failures = Vec::new();
    for file in ["json_repair.jsonl", "json_repair_more.jsonl"] {
        let path = format!("{}/../../tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
        let Ok(rows) = std::fs::read_to_string(&path) else {
            continue;
        };
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            let input = row["input"].as_str().unwrap();
            let healed = repair(input, &ReaderOptions::default());
            let got = match &healed {
                Ok(healed) => serde_json::from_str(&healed.json).unwrap_or_else(|error| {
                    panic!("{}: invalid output {:?}: {error}", row["id"], healed.json)
                }),
                Err(_) => Value::Null,
            };
            let accepted = row["accept"].as_array().into_iter().flatten();
            if !accepted
                .chain([&row["expect"]])
                .any(|right| same(right, &got))
            {
                failures.push(format!(
                    "{}: {input:?}\n   got {healed:?}\n  want {}",
                    row["id"], row["expect"]
                ));
            }
            check_pieces(input, &healed);
        }
    }
    assert!(
        failures.is_empty(),
        "{} rows:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn check_pieces(input: &str, healed: &Result<Healed, Error>) {
    let all = boundaries(input);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..30 {
        let cuts: Vec<usize> = all
            .iter()
            .copied()
            .filter(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                round == 0 || random % 5 == 0
            })
            .collect();
        let (status, reader) = read_pieces(input, &document(), &cuts);
        match (status, healed) {
            (Status::Done { complete, .. }, Ok(healed)) => {
                assert_eq!(reader.output(), healed.json, "{input:?} cut at {cuts:?}");
                assert_eq!(
                    reader.repairs(),
                    healed.repairs,
                    "{input:?} cut at {cuts:?}"
                );
                assert_eq!(complete, healed.complete, "{input:?} cut at {cuts:?}");
            }
            (Status::Failed(error), Err(expected)) => assert_eq!(error, *expected, "{input:?}"),
            other => panic!("{input:?} cut at {cuts:?}: {other:?}"),
        }
    }
}
