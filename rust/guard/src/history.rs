//! The last calls, each in 48 bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use turnwarden_signature::Signature;

use crate::answer::Answer;
use crate::kind::ToolKind;
use crate::tool::Tool;

/// Calls of one turn that are followed one by one; of more only their signatures count.
pub(crate) const MOST_CALLS_OF_A_TURN: u32 = 64;
/// Calls that are kept at most for the rules, whatever their turns.
const MOST_CALLS: usize = 1024;

/// One recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The tool.
    pub tool: Arc<Tool>,
    /// Over the arguments that count.
    pub signature: Signature,
    /// Milliseconds since the guard was made.
    pub time: u32,
    pub(crate) answer: u64,
    pub(crate) turn: u32,
    /// Of the model's id; 0 for none.
    pub(crate) id: u32,
    pub(crate) flags: Flags,
}

/// What is known about a call, in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u16);

macro_rules! flags {
    ($($name:ident, $set:ident = $bit:expr;)*) => {
        impl Flags {
            $(
                pub(crate) const fn $name(self) -> bool {
                    self.0 & (1 << $bit) != 0
                }
                pub(crate) const fn $set(self, on: bool) -> Self {
                    if on { Self(self.0 | 1 << $bit) } else { Self(self.0 & !(1 << $bit)) }
                }
            )*
        }
    };
}

flags! {
    judged, with_judged = 3;         // takes part in the rules
    done, with_done = 4;             // its result is known, or assumed
    similar, with_similar = 10;      // to the call before, of the same tool
    first_write, with_first_write = 11; // was not made before
    shell, with_shell = 12;
    starts_reply, with_starts_reply = 14;
    assumed, with_assumed = 13;      // blocked: its answer is that of the call that it repeats
}

/// Marks of an answer; set all together.
macro_rules! answer_flags {
    ($($name:ident = $bit:expr;)*) => {
        impl Flags {
            $(
                pub(crate) const fn $name(self) -> bool {
                    self.0 & (1 << $bit) != 0
                }
            )*
        }
    };
}

answer_flags! {
    failed = 5;
    transient = 6;
    unknown_tool = 7;
    nothing = 8;
    wordy = 9;
}

impl Flags {
    pub(crate) fn of_kind(kind: ToolKind) -> Self {
        let index = ToolKind::ALL.iter().position(|&known| known == kind);
        Self(u16::try_from(index.unwrap_or(0)).unwrap_or(0))
    }

    pub(crate) fn kind(self) -> ToolKind {
        let index = usize::from(self.0 & 0b111);
        ToolKind::ALL.get(index).copied().unwrap_or_default()
    }

    /// The marks of an answer stand in its order from `failed` on.
    fn with_answer(self, answer: Answer) -> Self {
        let kept = self.0 & !Self::ANSWER;
        Self(kept | u16::from(answer.marks()) << 5).with_done(true)
    }

    /// All bits of an answer.
    pub(crate) const ANSWER: u16 = 0b11_1111_0000;
}

impl CallRecord {
    pub(crate) fn set_answer(&mut self, answer: Answer) {
        self.answer = answer.hash;
        self.flags = self.flags.with_answer(answer).with_assumed(false);
    }

    /// Takes over what an equal call brought.
    pub(crate) fn assume_answer_of(&mut self, other: &Self) {
        self.answer = other.answer;
        let kept = self.flags.0 & !Flags::ANSWER;
        self.flags = Flags(kept | other.flags.0 & Flags::ANSWER).with_assumed(true);
    }

    pub(crate) fn forget_answer(&mut self) {
        self.answer = 0;
        self.flags = Flags(self.flags.0 & !Flags::ANSWER).with_assumed(false);
    }

    pub(crate) fn awaits_result(&self) -> bool {
        !self.flags.done() || self.flags.assumed()
    }

    /// It was answered without being run.
    pub(crate) fn refused(&self) -> bool {
        self.flags.done() && (self.flags.unknown_tool() || self.tool.is_refused())
    }

    pub(crate) fn lasting_failure(&self) -> bool {
        (self.flags.failed() || self.refused()) && !self.flags.transient()
    }

    /// It writes or may do so; a shell command that is not known as a read counts.
    pub(crate) fn may_write(&self) -> bool {
        match self.flags.kind() {
            ToolKind::Write => !self.flags.failed(),
            ToolKind::Unknown => self.flags.shell(),
            _ => false,
        }
    }

    pub(crate) fn new_write(&self) -> bool {
        self.flags.first_write() && self.may_write()
    }

    /// Whether two calls brought the same, or neither anything yet.
    pub(crate) fn same_answer(&self, other: &Self) -> bool {
        self.flags.done() == other.flags.done()
            && (!self.flags.done()
                || (self.answer == other.answer && self.flags.failed() == other.flags.failed()))
    }

    /// What makes two calls the same.
    pub(crate) fn element(&self, with_result: bool) -> u128 {
        let signature = self.signature.to_u128();
        if !(with_result && self.flags.done()) {
            return signature;
        }
        // Signatures are random bits already; the odd factor spreads the result over all of them.
        let result = u128::from(self.answer) << 1 | u128::from(self.flags.failed());
        (signature ^ result.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
            .wrapping_mul(0xDA94_2042_E4DD_58B5_94D0_49BB_1331_11EB)
    }
}

/// The last calls; memory grows in small steps, since most guards see few calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) calls: VecDeque<CallRecord>,
    /// Calls recorded in all.
    pub(crate) total: u64,
}

impl History {
    /// Adds a call, and forgets those that neither the history shows nor a rule needs.
    pub(crate) fn push(&mut self, call: CallRecord, shown: usize, oldest_turn: u32) {
        let most = shown.max(MOST_CALLS);
        while self.calls.len() >= shown {
            let oldest = self.calls.front();
            let is_needed = oldest.is_some_and(|call| call.turn >= oldest_turn);
            if is_needed && self.calls.len() < most {
                break;
            }
            self.calls.pop_front();
        }
        let length = self.calls.len();
        if length == self.calls.capacity() {
            let more = (length / 2).clamp(2, 4096);
            let to_shown = shown.saturating_sub(length);
            self.calls.reserve_exact(if to_shown > 0 {
                more.min(to_shown)
            } else {
                more
            });
        }
        self.calls.push_back(call);
        self.total = self.total.saturating_add(1);
    }

    pub(crate) fn first_number(&self) -> u64 {
        self.total.saturating_sub(self.calls.len() as u64)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&CallRecord> {
        let index = number.checked_sub(self.first_number())?;
        self.calls.get(usize::try_from(index).ok()?)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut CallRecord> {
        let index = number.checked_sub(self.first_number())?;
        self.calls.get_mut(usize::try_from(index).ok()?)
    }

    /// All calls with their numbers, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (u64, &CallRecord)> {
        (0..self.total).rev().zip(self.calls.iter().rev())
    }

    /// Judged calls from the newest back to a turn, with their numbers.
    pub(crate) fn back_to(&self, turn: u32) -> impl Iterator<Item = (u64, &CallRecord)> {
        self.newest_first()
            .filter(|(_, call)| call.flags.judged())
            .take_while(move |(_, call)| call.turn >= turn)
    }
}
