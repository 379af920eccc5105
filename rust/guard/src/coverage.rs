//! Which lines of which files were read, to tell reading on from reading again.

use turnwarden_signature::Value;

use crate::kind::ToolKind;

/// Files that are remembered; the one not read for longest is forgotten.
const MOST_FILES: usize = 32;
/// Stretches of lines remembered of one file.
const MOST_STRETCHES: usize = 64;
/// Lines of one read that count.
const LONGEST_READ: i64 = 5000;

/// Lines that were read since the last new write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Least recently read first.
    pub(crate) files: Vec<FileLines>,
    /// Reads in a row that brought under a quarter of new lines.
    pub(crate) stale_reads: u32,
}

/// Lines of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileLines {
    /// Hash of the path.
    pub(crate) path: u64,
    /// Half-open stretches of lines, in order, apart from each other.
    pub(crate) stretches: Vec<(i64, i64)>,
}

impl Coverage {
    /// Forgets what was read: it may have changed.
    pub(crate) fn forget(&mut self) {
        self.files = Vec::new();
    }

    /// Takes note of a call; one that names no lines of a file ends the row.
    pub(crate) fn read(&mut self, range: Option<Range>) {
        let Some(Range { path, start, end }) = range else {
            self.stale_reads = 0;
            return;
        };
        let new_lines = self.file(path).add(start, end);
        if new_lines * 4 < end - start {
            self.stale_reads = self.stale_reads.saturating_add(1);
        } else {
            self.stale_reads = 0;
        }
    }

    fn file(&mut self, path: u64) -> &mut FileLines {
        let known = self.files.iter().position(|file| file.path == path);
        let file = match known {
            Some(at) => self.files.remove(at),
            None if self.files.len() >= MOST_FILES => {
                self.files.remove(0);
                FileLines {
                    path,
                    stretches: Vec::new(),
                }
            }
            None => FileLines {
                path,
                stretches: Vec::new(),
            },
        };
        let last = self.files.len();
        self.files.reserve_exact(1);
        self.files.push(file);
        &mut self.files[last]
    }
}

impl FileLines {
    /// Adds the lines from `start` to before `end`; returns how many of them are new.
    fn add(&mut self, start: i64, end: i64) -> i64 {
        let first = self.stretches.partition_point(|&(_, stop)| stop < start);
        let after = self.stretches.partition_point(|&(begin, _)| begin <= end);
        let touched = self.stretches.get(first..after).unwrap_or_default();
        let known: i64 = touched
            .iter()
            .map(|&(begin, stop)| (stop.min(end) - begin.max(start)).max(0))
            .sum();
        let joined = touched
            .iter()
            .fold((start, end), |(from, to), &(begin, stop)| {
                (from.min(begin), to.max(stop))
            });
        if touched.is_empty() {
            self.stretches.reserve_exact(1);
        }
        self.stretches.splice(first..after, [joined]);
        if self.stretches.len() > MOST_STRETCHES {
            self.stretches.remove(0);
        }
        end - start - known
    }
}

/// Lines of a file that a read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Hash of the path.
    path: u64,
    /// The first line.
    start: i64,
    /// One past the last line.
    end: i64,
}

impl Range {
    pub(crate) fn of(kind: ToolKind, arguments: Value<'_>) -> Option<Self> {
        if kind != ToolKind::Read {
            return None;
        }
        let mut named = Names::default();
        for (key, value) in arguments.members() {
            named.offer(key, value);
        }
        let start = named.start.value?.as_i64()?;
        let path = named.path.value?.as_str()?;
        let end = match named.limit.value.and_then(Value::as_i64) {
            Some(limit) => start.saturating_add(limit),
            None => named.end.value?.as_i64()?.saturating_add(1),
        };
        let end = end.min(start.saturating_add(LONGEST_READ));
        if end <= start {
            return None;
        }
        let hash = blake3::hash(path.as_bytes());
        let head = hash.as_bytes().first_chunk();
        Some(Self {
            path: head.map_or(0, |head| u64::from_le_bytes(*head)),
            start,
            end,
        })
    }
}

/// The arguments that say which lines are asked for.
#[derive(Default)]
struct Names<'a> {
    path: Named<'a>,
    start: Named<'a>,
    limit: Named<'a>,
    end: Named<'a>,
}

impl<'a> Names<'a> {
    fn offer(&mut self, key: &[u8], value: Value<'a>) {
        match key {
            b"path" => self.path.offer(0, value),
            b"file_path" => self.path.offer(1, value),
            b"filePath" => self.path.offer(2, value),
            b"file" => self.path.offer(3, value),
            b"offset" => self.start.offer(0, value),
            b"start_line" => self.start.offer(1, value),
            b"start" => self.start.offer(2, value),
            b"limit" => self.limit.offer(0, value),
            b"end_line" => self.end.offer(0, value),
            b"end" => self.end.offer(1, value),
            _ => {}
        }
    }
}

/// The value of the first of several names that is there.
#[derive(Clone, Copy, Default)]
struct Named<'a> {
    rank: u8,
    value: Option<Value<'a>>,
}

impl<'a> Named<'a> {
    fn offer(&mut self, rank: u8, value: Value<'a>) {
        let is_empty = value.as_str() == Some("");
        if !is_empty && (self.value.is_none() || rank < self.rank) {
            *self = Self {
                rank,
                value: Some(value),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn range(path: u64, start: i64, length: i64) -> Range {
        Range {
            path,
            start,
            end: start + length,
        }
    }

    #[test]
    fn memory_is_bounded_in_files_and_in_stretches_of_each() {
        let mut coverage = Coverage::default();
        for path in 0..10_000_u64 {
            coverage.read(Some(range(path, 0, 10)));
        }
        assert_eq!(coverage.files.len(), MOST_FILES);
        for line in 0..10_000 {
            coverage.read(Some(range(9_999, line * 7 % 9_973 * 100, 10)));
        }
        assert_eq!(coverage.files.len(), MOST_FILES);
        let last = coverage.files.last().map(|file| file.stretches.len());
        assert_eq!(last, Some(MOST_STRETCHES));
    }

    #[test]
    fn what_is_forgotten_counts_as_new_again_and_never_the_other_way() {
        let mut coverage = Coverage::default();
        for path in 0..40 {
            coverage.read(Some(range(path, 0, 100)));
        }
        coverage.read(Some(range(0, 0, 100))); // forgotten: eight files ago too many
        assert_eq!(coverage.stale_reads, 0);
        coverage.read(Some(range(39, 0, 100)));
        assert_eq!(coverage.stale_reads, 1);
    }

    #[test]
    fn a_quarter_of_new_lines_is_enough() {
        for (new_lines, stale) in [(25, 0), (24, 1)] {
            let mut coverage = Coverage::default();
            coverage.read(Some(range(1, 0, 100)));
            coverage.read(Some(range(1, new_lines, 100)));
            assert_eq!(coverage.stale_reads, stale, "{new_lines} of 100");
        }
    }

    proptest! {
        #[test]
        fn new_lines_are_those_that_a_set_does_not_hold(
            reads in prop::collection::vec((0..3_u64, 0..400_i64, 1..90_i64, 0..20_u8), 0..60),
        ) {
            let mut coverage = Coverage::default();
            let mut sets: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
            let mut stale = 0;
            for (path, start, length, write) in reads {
                if write == 0 {
                    coverage.forget();
                    sets.clear();
                }
                let set = sets.entry(path).or_default();
                let before = set.len();
                set.extend(start..start + length);
                let new_lines = i64::try_from(set.len() - before).unwrap();
                stale = if new_lines * 4 < length { stale + 1 } else { 0 };
                coverage.read(Some(range(path, start, length)));
                prop_assert_eq!(coverage.stale_reads, stale);
            }
        }
    }
}
