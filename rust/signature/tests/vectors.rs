//! The vectors that Rust and Python share: canon and signature of each text.

use std::fmt::Write;

use serde_json::Value;
use turnwarden_signature::{Canon, signature_of_json};

const VECTORS: &str = include_str!("../../../tests/vectors/signatures.jsonl");

#[test]
fn every_vector_has_its_canon_and_signature() {
    for line in VECTORS.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| row[name].as_str().unwrap();
        let canon = Canon::from_arguments_text(field("text"));
        let mut bytes = String::new();
        for byte in canon.as_bytes() {
            write!(bytes, "{byte:02x}").unwrap();
        }
        assert_eq!(bytes, field("canon"), "{}", field("id"));
        let signature = signature_of_json(field("name"), field("text"));
        assert_eq!(signature.to_string(), field("signature"), "{}", field("id"));
    }
}
