//! What guards read of texts that models and tools write: names, commands, results, replies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwarden_guard::{
    Answer, KindTables, TextLoopDetector, Tools, VolatileKeys, mask, masked_hash, shown_name,
};
use turnwarden_signature::Canon;

fuzz_target!(|input: (&str, &str, &str)| {
    let (one, other, key) = input;
    let mut keys = VolatileKeys::default();
    let _known = keys.set(key, true).is_ok() && keys.set("date", false).is_ok();
    for keys in [&keys, &VolatileKeys::default()] {
        results_are_equal_when_their_masks_are(one, other, keys);
        values_are_read(one, keys);
    }
    names_are_escaped(one);
    let tables = KindTables::default();
    let _kinds = (tables.of_name(one), tables.of_command(one));

    let mut whole = TextLoopDetector::default();
    let mut pieces = TextLoopDetector::default();
    let text = format!("{one}{other}{}", one.repeat(20));
    let found = whole.feed(&text);
    let mut last = None;
    for c in text.chars() {
        last = pieces.feed(c.encode_utf8(&mut [0; 4]));
    }
    assert_eq!(found.is_some(), last.is_some());
});

fn results_are_equal_when_their_masks_are(one: &str, other: &str, keys: &VolatileKeys) {
    let answers = [one, other].map(|text| Answer::of_result(text, keys));
    assert_eq!(answers[0].hash, masked_hash(one, keys));
    if answers[0].hash == answers[1].hash {
        assert_eq!(mask(one, keys), mask(other, keys));
    }
    let error = Answer::of_error(one, keys);
    assert!(error.failed() && error.hash == answers[0].hash);
}

fn values_are_read(text: &str, keys: &VolatileKeys) {
    let canon = Canon::from_arguments_text(text);
    let answer = Answer::of_value(canon.value(), keys);
    assert!(!answer.failed());
    assert_eq!(answer, Answer::of_value(canon.value(), keys));
}

fn names_are_escaped(name: &str) {
    let shown = shown_name(name);
    assert!(shown.len() < 512);
    assert!(
        !shown
            .chars()
            .any(|c| c.is_control() || "[]<>`\"' ".contains(c))
    );
    let tools = Tools::default();
    let kept = tools.get(name);
    assert!(kept.name().len() <= 192);
    assert_eq!(tools.get(kept.name()).name(), kept.name());
}
