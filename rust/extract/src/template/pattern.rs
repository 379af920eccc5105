//! The part of regular expressions that response templates use and that markers can say.

/// A pattern without alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) pieces: Vec<Piece>,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    /// White space, or none.
    Space,
    /// Digits.
    Digits,
    /// Anything within a tag: more attributes.
    Attributes,
    /// Anything at all.
    Anything,
    /// A named group around text.
    Group(String),
    /// The text of a group again.
    Same(String),
}

impl Piece {
    pub(super) fn is_space(&self) -> bool {
        match self {
            Self::Space => true,
            Self::Literal(text) => text.trim().is_empty(),
            _ => false,
        }
    }

    /// The literal, unless it is white space.
    pub(super) fn marker(&self) -> Option<String> {
        match self {
            Self::Literal(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => None,
        }
    }
}

impl Pattern {
    pub(super) fn literal(text: &str) -> Self {
        Self {
            pieces: vec![Piece::Literal(text.to_owned())],
        }
    }

    fn push(&mut self, piece: Piece) {
        match (self.pieces.last_mut(), piece) {
            (Some(Piece::Literal(text)), Piece::Literal(more)) => text.push_str(&more),
            (Some(Piece::Space), Piece::Space) => {}
            (_, Piece::Literal(text)) if text.is_empty() => {}
            (_, piece) => self.pieces.push(piece),
        }
    }

    /// The text when it is literal, white space around it aside.
    pub(super) fn as_literal(&self) -> Option<String> {
        let mut literal = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => literal.push_str(text),
                Piece::Space => {}
                _ => return None,
            }
        }
        // White space between two literals would make it two markers.
        let inner = self.pieces.iter().skip(1).rev().skip(1);
        let whole = inner.clone().all(|piece| *piece != Piece::Space);
        whole.then_some(literal)
    }

    /// The markers that white space parts; of `tags` also those in one literal. `None` when there
    /// is anything else.
    pub(super) fn markers(&self, tags: bool) -> Option<Vec<String>> {
        let mut markers = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) if tags => {
                    markers.extend(text.replace("><", ">\n<").lines().map(str::to_owned));
                }
                Piece::Literal(text) => markers.push(text.clone()),
                Piece::Space => {}
                _ => return None,
            }
        }
        let trimmed = markers.iter().map(|marker| marker.trim().to_owned());
        Some(trimmed.filter(|marker| !marker.is_empty()).collect())
    }

    /// The names of its groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Group(name) => Some(name.as_str()),
            _ => None,
        })
    }

    fn position(&self, group: &str) -> Option<usize> {
        let is_group = |piece: &Piece| matches!(piece, Piece::Group(name) if name == group);
        self.pieces.iter().position(is_group)
    }

    /// The literal before a group, and whether attributes stand in it.
    pub(super) fn before(&self, group: &str) -> Option<(String, bool)> {
        let mut attributes = false;
        let mut literal = String::new();
        for piece in self.pieces.get(..self.position(group)?)? {
            match piece {
                Piece::Literal(text) => literal.push_str(text),
                Piece::Space => {}
                Piece::Attributes => {
                    attributes = true;
                    literal.push(' ');
                }
                _ => return None,
            }
        }
        Some((literal, attributes))
    }

    /// The literal before a group, and what stands behind the group.
    pub(super) fn around(&self, group: &str) -> Option<(String, Vec<Piece>)> {
        let (before, _) = self.before(group)?;
        let behind = self.pieces.get(self.position(group)? + 1..)?;
        Some((before, behind.to_vec()))
    }

    /// Whether a marker is how it begins.
    pub(super) fn begins_with(&self, marker: &str) -> bool {
        match self.pieces.iter().find(|piece| !piece.is_space()) {
            Some(Piece::Literal(text)) => text.trim_start().starts_with(marker),
            _ => false,
        }
    }

    pub(super) fn ends_with(&self, marker: &str) -> bool {
        matches!(self.pieces.last(), Some(Piece::Literal(text)) if text.ends_with(marker))
    }
}

/// Most alternatives that a pattern may come to.
const MOST: usize = 16;
/// Deepest nesting of groups.
const DEEPEST: usize = 8;

/// Reads a pattern; each way of matching it is one pattern.
pub(super) fn read(text: &str) -> Result<Vec<Pattern>, String> {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        chars: &chars,
        at: 0,
    };
    let patterns = reader.alternatives(0)?;
    if reader.at < chars.len() {
        return Err(reader.unread("a closing parenthesis too many"));
    }
    Ok(patterns)
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn unread(&self, what: &str) -> String {
        format!(
            "{what} at character {}; declare the format with Format(...)",
            self.at
        )
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn take(&mut self, text: &str) -> bool {
        let length = text.chars().count();
        let here = self.chars.get(self.at..self.at + length);
        let taken = here.is_some_and(|here| here.iter().copied().eq(text.chars()));
        if taken {
            self.at += length;
        }
        taken
    }

    fn alternatives(&mut self, depth: usize) -> Result<Vec<Pattern>, String> {
        if depth > DEEPEST {
            return Err(self.unread("groups nested too deeply"));
        }
        let mut all = Vec::new();
        loop {
            all.extend(self.sequence(depth)?);
            if all.len() > MOST {
                return Err(self.unread("too many alternatives"));
            }
            if !self.take("|") {
                return Ok(all);
            }
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<Vec<Pattern>, String> {
        let mut ways = vec![Pattern::default()];
        while let Some(next) = self.peek().filter(|next| !matches!(next, '|' | ')')) {
            self.at += 1;
            let mut options = self.atom(next, depth)?;
            if self.quantifier(&mut options)? {
                options.push(Pattern::default());
            }
            let mut longer = Vec::new();
            for way in &ways {
                for option in &options {
                    let mut whole = way.clone();
                    for piece in &option.pieces {
                        whole.push(piece.clone());
                    }
                    if !longer.contains(&whole) {
                        longer.push(whole);
                    }
                }
            }
            if longer.len() > MOST {
                return Err(self.unread("too many alternatives"));
            }
            ways = longer;
        }
        Ok(ways)
    }

    fn atom(&mut self, first: char, depth: usize) -> Result<Vec<Pattern>, String> {
        let piece = match first {
            '^' | '$' => return Ok(vec![Pattern::default()]),
            '.' => Piece::Anything,
            '(' => return self.group(depth),
            '[' => self.class()?,
            '\\' => match self.next() {
                Some('s') => Piece::Space,
                Some('d') => Piece::Digits,
                Some('w' | 'S') => Piece::Anything,
                Some('b' | 'A' | 'Z' | 'z') => return Ok(vec![Pattern::default()]),
                Some('n') => Piece::Literal("\n".to_owned()),
                Some('t') => Piece::Literal("\t".to_owned()),
                Some('r') => Piece::Literal("\r".to_owned()),
                Some(c) if !c.is_alphanumeric() => Piece::Literal(c.to_string()),
                _ => return Err(self.unread("an escape that cannot be read")),
            },
            '*' | '+' | '?' | '{' => {
                return Err(self.unread("a quantifier without anything before"));
            }
            c => Piece::Literal(c.to_string()),
        };
        Ok(vec![Pattern {
            pieces: vec![piece],
        }])
    }

    /// A class of characters: space, digits, what may stand in a tag, or anything.
    fn class(&mut self) -> Result<Piece, String> {
        let negated = self.take("^");
        let mut members = Vec::new();
        loop {
            match self.next() {
                None => return Err(self.unread("a class that is not closed")),
                Some(']') if !members.is_empty() => break,
                Some('\\') => {
                    let escaped = self.next().unwrap_or_default();
                    members.extend(['\\', escaped]);
                }
                Some(c) => members.push(c),
            }
        }
        let text: String = members.into_iter().collect();
        Ok(match (negated, text.as_str()) {
            (true, ">") => Piece::Attributes,
            (false, "\\d" | "0-9") => Piece::Digits,
            (false, "\\s" | " " | "\\n" | " \\t" | "\\n\\r" | "\\r\\n" | " \\n") => Piece::Space,
            _ => Piece::Anything,
        })
    }

    fn group(&mut self, depth: usize) -> Result<Vec<Pattern>, String> {
        if self.take("?P=") {
            let name = self.name(')')?;
            return Ok(vec![Pattern {
                pieces: vec![Piece::Same(name)],
            }]);
        }
        let named = if self.take("?P<") {
            Some(self.name('>')?)
        } else if self.take("?:") || self.take("?=") {
            // What is only looked at is bounded by it all the same.
            None
        } else if self.peek() == Some('?') {
            return Err(self.unread("a group of a kind that cannot be read"));
        } else {
            None
        };
        let inner = self.alternatives(depth + 1)?;
        if !self.take(")") {
            return Err(self.unread("a group that is not closed"));
        }
        let Some(name) = named else {
            return Ok(inner);
        };
        let plain = |piece: &Piece| !matches!(piece, Piece::Group(_) | Piece::Same(_));
        let literal = |piece: &Piece| matches!(piece, Piece::Literal(_));
        if inner
            .iter()
            .any(|way| !way.pieces.iter().all(plain) || way.pieces.iter().all(literal))
        {
            return Err(self.unread("a named group around more than a run of characters"));
        }
        Ok(vec![Pattern {
            pieces: vec![Piece::Group(name)],
        }])
    }

    fn name(&mut self, end: char) -> Result<String, String> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(c) if c == end => return Ok(name),
                Some(c) => name.push(c),
                None => return Err(self.unread("a group's name that does not end")),
            }
        }
    }

    /// Reads what says how often; whether none will do, too.
    fn quantifier(&mut self, options: &mut [Pattern]) -> Result<bool, String> {
        let Some(mark @ ('*' | '+' | '?' | '{')) = self.peek() else {
            return Ok(false);
        };
        self.at += 1;
        if mark == '{' {
            while self.next().is_some_and(|c| c != '}') {}
        }
        // Lazy or possessive: the same texts match.
        let _ = self.take("?") || self.take("+");
        let runs = |piece: &Piece| {
            matches!(
                piece,
                Piece::Space | Piece::Digits | Piece::Attributes | Piece::Anything
            )
        };
        let run = options
            .iter()
            .all(|way| matches!(way.pieces.as_slice(), [piece] if runs(piece)));
        if run {
            return Ok(false);
        }
        if mark == '?' {
            let blank = options
                .iter()
                .all(|way| way.pieces.iter().all(Piece::is_space));
            if blank {
                for way in options {
                    way.pieces = vec![Piece::Space];
                }
                return Ok(false);
            }
            return Ok(true);
        }
        let blank = options
            .iter()
            .all(|way| way.pieces.iter().all(Piece::is_space));
        if blank {
            for way in options {
                way.pieces = vec![Piece::Space];
            }
            return Ok(false);
        }
        Err(self.unread("a repetition of more than white space or any characters"))
    }
}
