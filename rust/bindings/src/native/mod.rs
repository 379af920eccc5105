//! Native messages as Python sees them: `parse_message` and `MessageStream` over the readers of
//! `turnwarden-extract`, which look at Python objects through a view.

pub(crate) mod functions;
mod halves;
pub(crate) mod stream;
mod view;
mod write;
