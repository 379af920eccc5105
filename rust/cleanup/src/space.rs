//! White space at the ends of the visible text and where markup was cut out of it.

/// Whether white space holds an empty line: the text around it was two paragraphs.
#[must_use]
pub fn holds_blank_line(space: &str) -> bool {
    let newlines = memchr::memchr_iter(b'\n', space.as_bytes());
    newlines.take(2).count() == 2
}

/// What becomes of the white space between two pieces of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceKept<'a> {
    /// It stood at the beginning.
    Nothing,
    /// It stays as it is.
    AsIs(&'a str),
    /// Markup was cut out of it, and it held a blank line: one blank line is left.
    BlankLine,
}

/// The white space after the text so far, kept back until something visible follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joint {
    space: String,
    cut: bool,
}

impl Joint {
    /// Adds white space.
    pub fn push(&mut self, space: &str) {
        self.space.push_str(space);
    }

    /// Notes that something was cut out here.
    pub fn cut(&mut self) {
        self.cut = true;
    }

    /// Whether nothing is held back and nothing was cut.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.space.is_empty() && !self.cut
    }

    /// What is left of the white space once something visible follows.
    #[must_use]
    pub fn kept(&self, at_start: bool) -> SpaceKept<'_> {
        if at_start || self.space.is_empty() {
            return SpaceKept::Nothing;
        }
        if self.cut && holds_blank_line(&self.space) {
            return SpaceKept::BlankLine;
        }
        SpaceKept::AsIs(&self.space)
    }

    /// Adds what another one holds.
    pub fn append(&mut self, other: &Self) {
        self.space.push_str(&other.space);
        self.cut |= other.cut;
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.space.clear();
        self.cut = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_line_around_a_cut_becomes_one_blank_line() {
        let mut joint = Joint::default();
        joint.push("\n\n");
        joint.cut();
        joint.push("\n\n\n");
        assert_eq!(joint.kept(false), SpaceKept::BlankLine);
    }

    #[test]
    fn space_without_a_cut_or_without_a_blank_line_stays() {
        let mut joint = Joint::default();
        joint.push("\n\n\n");
        assert_eq!(joint.kept(false), SpaceKept::AsIs("\n\n\n"));
        joint.clear();
        joint.push(" ");
        joint.cut();
        joint.push(" ");
        assert_eq!(joint.kept(false), SpaceKept::AsIs("  "));
        assert_eq!(joint.kept(true), SpaceKept::Nothing);
    }
}
