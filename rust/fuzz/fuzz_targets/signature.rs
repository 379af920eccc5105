//! Signatures and sketches: any arguments have them, and any bytes are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwarden_signature::{Canon, Signature, Value, signature_of_json};
use turnwarden_similarity::{Sketch, cursor};

fuzz_target!(|input: (&str, &str, &str, &[u8])| {
    let (name, one, other, bytes) = input;
    formatting_does_not_count(name, one);
    similarity_keeps_its_laws(one, other);
    any_bytes_are_read_or_refused(bytes);
});

fn formatting_does_not_count(name: &str, text: &str) {
    let canon = Canon::from_arguments_text(text);
    assert_eq!(signature_of_json(name, text), Signature::of(name, &canon));
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
        && value.is_object()
    {
        let pretty = serde_json::to_string_pretty(&value).expect("a value is JSON");
        let compact = serde_json::to_string(&value).expect("a value is JSON");
        assert_eq!(
            signature_of_json(name, &pretty),
            signature_of_json(name, &compact)
        );
    }
}

fn similarity_keeps_its_laws(one: &str, other: &str) {
    let [one, other] = [one, other].map(Canon::from_arguments_text);
    let [left, right] = [&one, &other].map(|canon| Sketch::of(canon.value()));
    let similarity = left.similarity(&right);
    assert!((0.0..=1.0).contains(&similarity));
    assert!((similarity - right.similarity(&left)).abs() < 1e-12);
    if one == other {
        assert_eq!(left, right);
    }
    assert_eq!(Sketch::from_bytes(left.as_bytes()).as_ref(), Some(&left));
    assert!(!cursor(&[&left, &right, &left]));
}

fn any_bytes_are_read_or_refused(bytes: &[u8]) {
    let value = Value::from_bytes(bytes);
    assert!(value.tokens().count() <= bytes.len());
    assert!(value.members().count() <= bytes.len());
    let made = Sketch::of(value);
    if let Some(read) = Sketch::from_bytes(bytes) {
        assert!((0.0..=1.0).contains(&read.similarity(&made)));
        let _moves = cursor(&[&read, &made]);
    }
}
