//! Signatures: no panic on any name and arguments, and white space in JSON changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwarden_signature::signature_of_json;

fuzz_target!(|input: (&str, &str)| {
    let (name, arguments) = input;
    let signature = signature_of_json(name, arguments);
    assert_eq!(signature, signature_of_json(name, arguments));
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(arguments)
        && value.is_object()
    {
        let pretty = serde_json::to_string_pretty(&value).expect("a value is JSON");
        let compact = serde_json::to_string(&value).expect("a value is JSON");
        assert_eq!(
            signature_of_json(name, &pretty),
            signature_of_json(name, &compact)
        );
    }
});
