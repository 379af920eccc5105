//! The JSON reader: any text in any pieces gives what the whole gives, and what it gives is JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwarden_extract::json::{Reader, ReaderOptions, Status};

fn read(text: &str, cuts: &[u8]) -> (Status, String, String) {
    let mut reader = Reader::new(ReaderOptions::default(), 0);
    let mut length = 0;
    let mut status = Status::NeedMore;
    for piece in turnwarden_fuzz::pieces(text, cuts) {
        length += piece.len();
        status = reader.read(&text[..length], false);
        if status != Status::NeedMore {
            break;
        }
    }
    if status == Status::NeedMore {
        status = reader.read(text, true);
    }
    let repairs = format!("{:?}", reader.repairs());
    (status, reader.into_output(), repairs)
}

fuzz_target!(|input: (&str, &[u8])| {
    let (text, cuts) = input;
    let mut whole = Reader::new(ReaderOptions::default(), 0);
    let status = whole.read(text, true);
    assert_ne!(status, Status::NeedMore);
    let repairs = format!("{:?}", whole.repairs());
    let output = whole.into_output();
    if let Status::Done { .. } = status {
        let value: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&output);
        assert!(value.is_ok(), "{output:?}");
    }
    let (chunked_status, chunked_output, chunked_repairs) = read(text, cuts);
    assert_eq!(status, chunked_status);
    if let Status::Done { .. } = status {
        assert_eq!(output, chunked_output);
        assert_eq!(repairs, chunked_repairs);
    }
});
