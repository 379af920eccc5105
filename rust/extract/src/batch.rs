//! Many replies at once, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{Parser, Reply};

/// A thread takes so many texts at a time: few enough to share evenly, enough to seldom ask.
const BLOCK: usize = 16;

/// A thread more pays off from about so many bytes on: starting one costs tens of microseconds.
const BYTES_PER_THREAD: usize = 64 * 1024;

/// Parse `texts` on up to `threads` threads; the replies come in the order of the texts.
///
/// Cost: linear in the texts; blocks of texts are handed out as threads become free, so that one
/// long reply does not hold up the others.
#[must_use]
pub fn parse_many(parser: &Parser, texts: &[&str], threads: usize) -> Vec<Reply> {
    let blocks: Vec<&[&str]> = texts.chunks(BLOCK).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let threads = threads.min(blocks.len()).min(1 + bytes / BYTES_PER_THREAD);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done: Vec<(usize, Vec<Reply>)> = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(block) = blocks.get(at) else {
                return done;
            };
            done.push((at, block.iter().map(|text| parser.parse(text)).collect()));
        }
    };
    let mut done = thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            // A thread that cannot be started is not missed: the others take its blocks.
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for helper in helpers {
            match helper.join() {
                Ok(replies) => done.extend(replies),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().flat_map(|(_, replies)| replies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn replies_come_in_the_order_of_their_texts() {
        let parser = Parser::new(Options::default()).unwrap();
        let texts: Vec<String> = (0..1000)
            .map(|n| format!("{n} {}", "x".repeat(n)))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for threads in [1, 2, 7] {
            let replies = parse_many(&parser, &texts, threads);
            assert_eq!(replies.len(), texts.len());
            for (reply, text) in replies.iter().zip(&texts) {
                assert_eq!(reply.text, *text.trim());
            }
        }
    }

    #[test]
    fn no_texts_give_no_replies() {
        let parser = Parser::new(Options::default()).unwrap();
        assert!(parse_many(&parser, &[], 4).is_empty());
    }
}
