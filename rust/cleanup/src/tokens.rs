//! Tokens that end a turn and leak into the text of a reply.

/// End-of-turn tokens, dropped at the end of a reply and beside markup, and nowhere else.
pub const END_OF_TURN: &[&str] = &[
    "</s>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eot|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
    "<|end_of_sentence|>",
    "<end_of_turn>",
    "<|eom|>",
    "<|eos|>",
    "<eos>",
    "<|END_OF_TURN_TOKEN|>",
    "[e~[",
    "<turn|>",
    "[/INST]",
];
