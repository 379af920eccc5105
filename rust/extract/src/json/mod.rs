//! JSON as models write it: a resumable scanner that heals from a closed list of repairs.
//!
//! [`Reader`] reads one value at a place in a growing text and writes compact, healed JSON;
//! [`repair`] does so for a whole text with anything around its values. Valid JSON comes back as
//! it was written, less white space outside strings. Cost: linear in the text for any chunking;
//! the text is never read recursively.

mod ahead;
mod bare;
mod closers;
mod closing;
mod decide;
mod entries;
mod glance;
mod glyph;
mod kinds;
mod noise;
mod number;
mod path;
mod prose;
mod reader;
mod scan;
mod stack;
mod strict;
mod string;
mod structure;
mod unescape;
mod visit;

#[cfg(test)]
mod tests;

pub use closers::Closer;
pub use kinds::{Error, ErrorKind, RepairKind};
pub(crate) use reader::FirstRepair;
pub use reader::{Kind, Member, Mode, Reader, ReaderOptions, Status, ValuelessKey};
pub use unescape::unescape;
pub use visit::{Entries, Entry, VisitError, Visitor, entries, visit};

use crate::Repair;

/// A text brought to valid JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healed {
    /// Compact JSON.
    pub json: String,
    /// What was done, in order of offset.
    pub repairs: Vec<Repair>,
    /// Whether every value was closed in the text.
    pub complete: bool,
}

/// Heals a whole text: the JSON in it, with prose, reasoning blocks, fences or outer quotes around.
/// Several values make a list. `options.mode` is not looked at.
///
/// # Errors
///
/// When the text holds no value, or one that cannot be read safely.
///
/// # Examples
///
/// ```
/// use turnwarden_extract::json::{ReaderOptions, repair};
///
/// let healed = repair("Here: {'a': [1, 2,], b: None", &ReaderOptions::default())?;
/// assert_eq!(healed.json, r#"{"a":[1,2],"b":null}"#);
/// # Ok::<(), turnwarden_extract::json::Error>(())
/// ```
pub fn repair(text: &str, options: &ReaderOptions) -> Result<Healed, Error> {
    let options = ReaderOptions {
        mode: Mode::Document,
        member_depth: 0,
        ..options.clone()
    };
    let mut reader = Reader::new(options, 0);
    match reader.read(text, true) {
        Status::Done { complete, .. } => {
            let repairs = reader.repairs().to_vec();
            Ok(Healed {
                json: reader.into_output(),
                repairs,
                complete,
            })
        }
        Status::Failed(error) => Err(error),
        Status::NeedMore => Err(Error::new(ErrorKind::NoValue, text.len())),
    }
}
