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
    pub(crate) fn stale_reads(&self) -> u32 {
        self.stale_reads
    }

    /// Forgets what was read: it may have changed.
    pub(crate) fn forget(&mut self) {
        self.files = Vec::new();
    }

    /// Takes note of a call; one that names no lines of a file ends the row.
    pub(crate) fn read(&mut self, kind: ToolKind, arguments: Value<'_>) {
        let range = (kind == ToolKind::Read)
            .then(|| range_of(arguments))
            .flatten();
        let Some((path, start, end)) = range else {
            self.stale_reads = 0;
            return;
        };
        let file = self.file(path);
        let new_lines = file.add(start, end);
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
        self.stretches.splice(first..after, [joined]);
        if self.stretches.len() > MOST_STRETCHES {
            self.stretches.remove(0);
        }
        end - start - known
    }
}

/// The file and the lines that a read asks for.
fn range_of(arguments: Value<'_>) -> Option<(u64, i64, i64)> {
    let (mut path, mut start, mut limit, mut end) =
        (Named::default(), Named::default(), None, Named::default());
    for (key, value) in arguments.members() {
        match key {
            b"path" => path.offer(0, value),
            b"file_path" => path.offer(1, value),
            b"filePath" => path.offer(2, value),
            b"file" => path.offer(3, value),
            b"offset" => start.offer(0, value),
            b"start_line" => start.offer(1, value),
            b"start" => start.offer(2, value),
            b"limit" => limit = Some(value),
            b"end_line" => end.offer(0, value),
            b"end" => end.offer(1, value),
            _ => {}
        }
    }
    let start = start.value?.as_i64()?;
    let path = path.value?;
    path.as_str()?;
    let stop = match limit.and_then(Value::as_i64) {
        Some(limit) => start.saturating_add(limit),
        None => end.value?.as_i64()?.saturating_add(1),
    };
    let stop = stop.min(start.saturating_add(LONGEST_READ));
    if stop <= start {
        return None;
    }
    let hash = blake3::hash(path.as_bytes());
    let path = hash
        .as_bytes()
        .first_chunk()
        .map_or(0, |head| u64::from_le_bytes(*head));
    Some((path, start, stop))
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
