//! From what came of a call's arguments to a call, or to a fault.
//!
//! Argument strings are healed and typed as in text formats; arguments that came as data are
//! taken as they are.

use crate::calls::{self as drafts, Draft, Rules, Settled};
use crate::json::{Mode, Reader, ReaderOptions, Status};
use crate::view::{Kind as JsonKind, Value};
use crate::{Fault, FaultKind, Limits, Repair, Span, ToolCall};

use super::calls::{Call, Progress, Source};
use super::view::Unwritable;

/// What became of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made {
    /// The call, unless it was refused.
    pub(crate) call: Option<ToolCall>,
    /// Whether all of it came.
    pub(crate) complete: bool,
    /// Why it was refused, or what of it was.
    pub(crate) faults: Vec<Fault>,
    /// What was healed in its argument string; offsets count from the start of that.
    pub(crate) repairs: Vec<Repair>,
}

/// Makes the call. `may_be_cut` says that the message broke off, and that nothing of this call
/// shows whether it was over.
pub(crate) fn make(rules: &Rules<'_>, call: &Call, may_be_cut: bool) -> Made {
    let mut draft = Draft {
        name: call.name.clone(),
        arguments: drafts::Arguments::Missing,
        id: call.id.clone(),
        complete: true,
        repaired: false,
        junk: None,
        span: Span::default(),
    };
    let mut made = Made {
        call: None,
        complete: true,
        faults: Vec::new(),
        repairs: Vec::new(),
    };
    match &call.source {
        Source::Refused(refusal) => {
            let kind = match refusal {
                super::calls::Refusal::NotAnObject(_) => FaultKind::ArgumentsNotAnObject,
                super::calls::Refusal::TooLong
                | super::calls::Refusal::Unwritable(Unwritable::TooLong) => {
                    FaultKind::ArgumentsTooLong
                }
                super::calls::Refusal::Unwritable(Unwritable::TooDeep) => FaultKind::TooDeep,
                super::calls::Refusal::Unwritable(Unwritable::Foreign(_)) => {
                    FaultKind::UnreadableArguments
                }
            };
            made.faults.push(Fault {
                kind,
                offset: 0,
                name: call.name.clone(),
                message: refusal.sentence(),
            });
            return made;
        }
        Source::Json(text) => match read(text, call.progress(), rules.limits) {
            Ok(Some(read)) => {
                draft.complete = read.complete;
                draft.repaired = read.repaired || !read.repairs.is_empty();
                draft.arguments = drafts::Arguments::Json(read.json);
                made.repairs = read.repairs;
                if read.rest {
                    made.faults.push(rest_fault(call.name.as_deref()));
                }
            }
            Ok(None) => draft.complete = !may_be_cut,
            Err(kind) => draft.arguments = drafts::Arguments::Refused(kind),
        },
        Source::Input(text) => {
            draft.complete = !may_be_cut;
            draft.arguments = drafts::Arguments::Text(text.clone());
        }
        Source::Data(written) => {
            draft.repaired = written.repaired;
            return as_it_is(rules, draft, written.json.clone(), made);
        }
        Source::Values(values) => {
            draft.complete = !may_be_cut;
            return as_it_is(rules, draft, values.to_json(), made);
        }
    }
    settle(rules, draft, made)
}

fn settle(rules: &Rules<'_>, draft: Draft, mut made: Made) -> Made {
    match rules.settle(draft) {
        Settled::Call(call, misfit) => {
            if misfit.is_some() {
                let name = Some(call.name.clone());
                made.faults
                    .push(drafts::fault(FaultKind::TypeMismatch, 0, name));
            }
            made.call = Some(call);
        }
        Settled::Incomplete(call) => {
            made.call = Some(call);
            made.complete = false;
        }
        Settled::Fault(fault) => made.faults.push(fault),
    }
    made
}

/// Arguments that are data keep their values: only the name is brought to its declared spelling.
fn as_it_is(rules: &Rules<'_>, mut draft: Draft, json: String, made: Made) -> Made {
    draft.name = draft.name.map(|name| {
        rules
            .tools
            .and_then(|tools| tools.spelling(&name))
            .unwrap_or(name)
    });
    draft.arguments = drafts::Arguments::Json(json);
    let untyped = Rules {
        tools: None,
        limits: rules.limits,
        passes_values: false,
    };
    settle(&untyped, draft, made)
}

/// Argument text, read.
struct Read {
    json: String,
    complete: bool,
    repaired: bool,
    repairs: Vec<Repair>,
    /// Whether another value followed, which was left out.
    rest: bool,
}

/// Reads argument text: an object, a string that holds one, or nothing.
fn read(text: &str, progress: Progress, limits: &Limits) -> Result<Option<Read>, FaultKind> {
    let wanted = skip_empty_objects(text);
    let skipped = text.len() - wanted.len();
    let refused = match value(wanted, skipped, limits) {
        Ok(mut read) => {
            if let Some(read) = &mut read {
                read.repaired |= skipped > 0;
            }
            return Ok(read);
        }
        Err(kind) => kind,
    };
    if matches!(refused, FaultKind::NumberOutOfRange | FaultKind::TooDeep) {
        return Err(refused);
    }
    // Prose or a fence around the object, a closer too many.
    if let Some(read) = document(text, limits) {
        return Ok(Some(read));
    }
    // A second object where one was expected: the first has the name, the second has none.
    if let Progress::Complete(end) = progress {
        let first = text.get(..end).unwrap_or_default();
        if let Ok(Some(read)) = value(first, 0, limits) {
            return Ok(Some(Read { rest: true, ..read }));
        }
    }
    Err(refused)
}

/// Proxies that build a stream from a block put the block's empty input before what follows.
fn skip_empty_objects(text: &str) -> &str {
    let mut text = text;
    loop {
        let inner = text.trim_start().strip_prefix('{').map(str::trim_start);
        let after = inner.and_then(|inner| inner.strip_prefix('}'));
        match after {
            Some(after) if after.trim_start().starts_with('{') => text = after,
            _ => return text,
        }
    }
}

fn options(limits: &Limits, mode: Mode) -> ReaderOptions {
    ReaderOptions {
        max_depth: limits.max_depth,
        mode,
        ..ReaderOptions::default()
    }
}

/// Reads text that is one value, at most twice encoded.
fn value(text: &str, offset: usize, limits: &Limits) -> Result<Option<Read>, FaultKind> {
    let mut complete = true;
    let mut repairs = Vec::new();
    let mut text = std::borrow::Cow::Borrowed(text);
    for level in 0..3 {
        if text.trim().is_empty() || text.trim() == "null" {
            return Ok(None);
        }
        let mut reader = Reader::new(options(limits, Mode::Value), 0);
        let end = match reader.read(&text, true) {
            Status::Done {
                end,
                complete: closed,
            } => {
                complete &= closed;
                end
            }
            // A string that holds no JSON is a string.
            Status::Failed(_) if level > 0 => return Err(FaultKind::ArgumentsNotAnObject),
            Status::Failed(error) => return Err(drafts::fault_of(error)),
            Status::NeedMore => return Err(FaultKind::UnreadableArguments),
        };
        repairs.extend(reader.repairs().iter().map(|repair| Repair {
            kind: repair.kind,
            offset: repair.offset + offset,
        }));
        let rest = text.get(end..).unwrap_or_default();
        let value = Value::new(reader.output());
        match value.kind() {
            JsonKind::Object if rest.trim().is_empty() => {
                return Ok(Some(Read {
                    json: value.json().to_owned(),
                    complete,
                    repaired: false,
                    repairs,
                    rest: false,
                }));
            }
            JsonKind::String if rest.trim().is_empty() => {
                text = std::borrow::Cow::Owned(value.text().unwrap_or_default().into_owned());
            }
            _ => return Err(FaultKind::ArgumentsNotAnObject),
        }
    }
    Err(FaultKind::ArgumentsNotAnObject)
}

/// Reads an object that has something around it.
fn document(text: &str, limits: &Limits) -> Option<Read> {
    let mut reader = Reader::new(options(limits, Mode::Document), 0);
    let Status::Done { complete, .. } = reader.read(text, true) else {
        return None;
    };
    if Value::new(reader.output()).kind() != JsonKind::Object {
        return None;
    }
    Some(Read {
        json: reader.output().to_owned(),
        complete,
        repaired: true,
        repairs: reader.repairs().to_vec(),
        rest: false,
    })
}

fn rest_fault(name: Option<&str>) -> Fault {
    Fault {
        kind: FaultKind::Junk,
        offset: 0,
        name: name.map(str::to_owned),
        message: format!(
            "after the arguments{} came another value, which has no name and was left out; send \
             each call with a name of its own",
            name.map(|name| format!(" of {name:?}")).unwrap_or_default()
        ),
    }
}
