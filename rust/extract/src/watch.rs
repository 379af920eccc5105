//! Ends a reply that repeats itself.
//!
//! The detector reads what the machine reads, and what it finds is held against where the machine
//! is: a payload is data, which may hold equal rows for good reasons. The reply ends right where
//! the repetition was found, at the same byte for every cut into chunks, as if no more had come.

use turnwarden_periodicity::{TextLoop, TextLoopDetector};

use crate::FaultKind;
use crate::calls::fault;
use crate::machine::Machine;

/// Looks whether a reply repeats itself.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    detector: TextLoopDetector,
}

impl Watch {
    /// Whether the reply has ended because it repeats itself.
    pub(crate) fn has_found(&self) -> bool {
        self.detector.found().is_some()
    }

    /// Adds `chunk` to `text`, or as much of it as comes before the end of a reply that repeats
    /// itself: the answer is whether it does.
    pub(crate) fn read(&mut self, chunk: &str, text: &mut String, machine: &mut Machine) -> bool {
        let mut rest = chunk;
        loop {
            let Some(found) = self.detector.feed(rest) else {
                text.push_str(rest);
                return false;
            };
            let (read, unread) = rest
                .split_at_checked(found.end - text.len())
                .unwrap_or((rest, ""));
            text.push_str(read);
            rest = unread;
            machine.advance(text, false);
            if is_loop(found, machine) {
                machine.advance(text, true);
                machine.tell_fault(fault(FaultKind::TextLoop, found.start, None));
                return true;
            }
            self.detector.excuse();
        }
    }
}

fn is_loop(found: TextLoop, machine: &Machine) -> bool {
    found.is_endless() || !machine.holds_payload_since(found.start)
}
