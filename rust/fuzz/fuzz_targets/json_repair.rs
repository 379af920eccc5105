//! Healing: no panic on any text; what comes out is JSON, and healing it again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwarden_extract::json::{Mode, ReaderOptions, repair};

fuzz_target!(|text: &str| {
    let options = ReaderOptions {
        mode: Mode::Document,
        ..ReaderOptions::default()
    };
    let Ok(healed) = repair(text, &options) else {
        return;
    };
    let value: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&healed.json);
    assert!(value.is_ok(), "{:?}", healed.json);
    let again = repair(&healed.json, &options).expect("healed JSON heals");
    assert_eq!(again.json, healed.json);
    assert!(again.repairs.is_empty(), "{:?}", again.repairs);
});
