//! Texts that repeat themselves and texts that do not; the naive oracle compares every period.

use proptest::prelude::*;
use serde_json::Value;
use turnwarden_periodicity::{TextLoop, TextLoopDetector, TextLoopKind};

fn find(text: &str) -> Option<TextLoop> {
    TextLoopDetector::default().feed(text)
}

const VECTORS: &str = include_str!("../../../tests/vectors/text_loops.jsonl");

fn rows() -> Vec<Value> {
    let rows = VECTORS.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().unwrap_or_default()
}

/// The text of a row: its parts, each as often as it says, with the count for `{n}`.
fn text_of(row: &Value) -> String {
    let mut text = String::new();
    for part in row["parts"].as_array().into_iter().flatten() {
        for n in 0..part["times"].as_u64().unwrap_or(1) {
            let piece = part["text"].as_str().unwrap_or_default();
            text += &match part["times"] {
                Value::Null => piece.to_owned(),
                _ => piece.replace("{n}", &n.to_string()),
            };
        }
    }
    text
}

#[test]
fn vectors_say_what_is_a_loop() {
    let mut judged = 0;
    for row in rows() {
        let found = find(&text_of(&row));
        let expect = &row["expect"];
        assert_eq!(
            found.is_some(),
            expect["loop"] == true,
            "{}: {found:?}",
            row["id"]
        );
        if let (Some(found), Some(start)) = (found, expect["start"].as_u64()) {
            assert!(
                (found.start as u64).abs_diff(start) <= 2,
                "{}: {found:?}, {start}",
                row["id"]
            );
        }
        if let (Some(found), Some(kind)) = (found, expect["kind"].as_str()) {
            assert_eq!(found.kind.as_str(), kind, "{}: {found:?}", row["id"]);
        }
        judged += 1;
    }
    assert!(judged > 40, "{judged}");
}

fn story() -> String {
    let rows = rows();
    let story = rows.iter().find(|row| row["id"] == "healthy-story");
    story.map(text_of).unwrap_or_default()
}

#[test]
fn exact_cycles_of_any_length_are_found_where_they_began() {
    for length in [1, 2, 3, 7, 31, 32, 33, 64, 150, 500, 1023, 1500, 4000] {
        let before = "To begin with, a few words of my own.\n\n";
        let story = story();
        let unit: String = story.chars().take(length).collect();
        let unit = if length < 4 {
            "nya".chars().take(length).collect()
        } else {
            unit
        };
        let text = format!("{before}{}", unit.repeat(20_000 / length + 2));
        let found = find(&text);
        let Some(found) = found else {
            panic!("a cycle of {length} bytes is not found");
        };
        // Long laps are known by their sentences before they are by their bytes.
        if found.kind == TextLoopKind::Cycle {
            assert_eq!(found.period, length);
        }
        assert!(
            length > 300 || found.kind == TextLoopKind::Cycle,
            "{length}"
        );
        let late = if found.kind == TextLoopKind::Cycle {
            0
        } else {
            100
        };
        let range = before.len() - 2..=before.len() + 2 + late;
        assert!(range.contains(&found.start), "{length}: {found:?}");
    }
}

#[test]
fn data_is_judged_with_the_patience_that_code_has() {
    let row = "yes, the same row again, ";
    let mut detector = TextLoopDetector::default();
    let mut found = None;
    for _ in 0..1000 {
        found = detector.feed(row);
        if found.is_some_and(|found| found.end < 16 << 10) {
            detector.excuse();
        } else if found.is_some() {
            break;
        }
    }
    assert!(
        found.is_some_and(|found| found.end >= 16 << 10),
        "{found:?}"
    );
}

/// Every period, compared byte by byte: the shortest that the text ends with over so many bytes,
/// and where that stretch begins.
fn naive_stretch(text: &[u8], least: impl Fn(usize) -> usize) -> Option<(usize, usize)> {
    (1..=4096.min(text.len() / 2)).find_map(|period| {
        let equal = (period..text.len())
            .rev()
            .take_while(|&at| text[at] == text[at - period])
            .count();
        (equal + period >= least(period)).then(|| (text.len() - equal - period, period))
    })
}

fn units() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "look",
        "again",
        "now",
        "the file",
        "I",
        "will",
        "then",
        "wait",
        "once more",
        "é",
        "ab",
    ]);
    prop::collection::vec(words, 1..60).prop_map(|words| words.join(" ") + "; ")
}

proptest! {
    #[test]
    fn cycles_are_those_that_the_naive_oracle_finds(unit in units(), before in units(), laps in 0_usize..12) {
        let text = format!("{before}. So {}", unit.repeat(laps));
        let enough = |period: usize| match period {
            0..256 => (5 * period).max(240),
            _ => 4 * period,
        };
        // Found at the latest a look after the oracle would: as many bytes as a look and a hash are.
        let late = |period: usize| enough(period) + 64 + 64;
        let cycle = find(&text).filter(|found| found.kind == TextLoopKind::Cycle);
        if let Some(found) = cycle {
            let read = &text.as_bytes()[..found.end];
            let (start, _) = naive_stretch(read, |period| if period == found.period { enough(period) } else { usize::MAX })
                .expect("what is found is a cycle");
            prop_assert!(found.start.abs_diff(start) <= 3);
        }
        if naive_stretch(text.as_bytes(), late).is_some() {
            prop_assert!(find(&text).is_some(), "missed");
        }
    }

    #[test]
    fn any_cut_into_chunks_finds_the_same(
        unit in units(), before in units(), laps in 0_usize..20, number in any::<bool>(), size in 1_usize..9,
    ) {
        let laps = (0..laps).map(|lap| if number { format!("{unit}{lap}. ") } else { format!("{unit}\n") });
        let text = format!("{before}\n\n{}", laps.collect::<String>());
        let mut detector = TextLoopDetector::default();
        let characters: Vec<char> = text.chars().collect();
        for chunk in characters.chunks(size) {
            detector.feed(&chunk.iter().collect::<String>());
        }
        prop_assert_eq!(detector.found(), find(&text));
        if let Some(found) = detector.found() {
            prop_assert!(text.is_char_boundary(found.start) && text.is_char_boundary(found.end));
            prop_assert!(found.start < found.end && found.period > 0);
        }
    }
}
