//! Where text, reasoning and payload lie in a model reply.
//!
//! Everything here answers with positions; nothing copies the reply. The engine of
//! `turnwarden-extract` asks these functions while it walks over a reply, so each of them can also
//! answer "that depends on text that has not arrived yet".

mod channels;
mod markdown;
mod reasoning;
mod space;
mod tokens;

pub use channels::{CHANNEL_TOKENS, ChannelToken, Message, message_of};
pub use markdown::{
    CodeSearch, CodeSpans, Fence, FenceMark, Found, at_line_start, closing_fence, fence_at,
    fence_closes_at,
};
pub use reasoning::{PREFACES, REASONING, ReasoningTags, WRAPPERS, Wrapper};
pub use space::{Joint, SpaceKept, holds_blank_line};
pub use tokens::END_OF_TURN;
