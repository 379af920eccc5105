//! Any text, in any pieces: no panic, and the laws of a reply hold.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    turnwarden_fuzz::check_reply(input.0, input.1);
});
