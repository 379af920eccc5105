//! The open containers, innermost last.

use super::decide::Shape;

/// An open container.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts of their own, in any mixture"
)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    /// Where its opener stands in the text, and in the output.
    pub(super) at: usize,
    pub(super) open: usize,
    /// Whether it holds anything.
    pub(super) filled: bool,
    /// Whether its text held a comma.
    pub(super) commas: bool,
    /// Whether an opener too many was dropped.
    pub(super) doubled: bool,
    /// Whether it is the outer object, without its braces.
    pub(super) implicit: bool,
    /// Its place among the members.
    pub(super) member: Option<usize>,
    /// The members and valueless keys recorded before its own.
    pub(super) first_member: usize,
    pub(super) first_valueless: usize,
    /// Where the next container outwards of its shape stands in the stack, plus one.
    same: usize,
}

impl Frame {
    /// An empty container whose opener stands at `at` in the text and at `open` in the output.
    pub(super) const fn new(shape: Shape, at: usize, open: usize, member: Option<usize>) -> Self {
        Self {
            shape,
            at,
            open,
            filled: false,
            commas: false,
            doubled: false,
            implicit: false,
            member,
            first_member: 0,
            first_valueless: 0,
            same: 0,
        }
    }
}

/// A stack that also knows the innermost container of each shape, so that a closer finds its
/// opener at once however deep the nesting is.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    frames: Vec<Frame>,
    /// Where the innermost of each shape stands, plus one.
    nearest: [usize; 3],
}

impl Stack {
    pub(super) fn reserve(&mut self, count: usize) {
        self.frames.reserve(count);
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn last(&self) -> Option<&Frame> {
        self.frames.last()
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    /// The shape of the innermost container.
    pub(super) fn inside(&self) -> Option<Shape> {
        self.frames.last().map(|frame| frame.shape)
    }

    /// The shape of the container at `depth`, 0 being the outermost.
    pub(super) fn shape_at(&self, depth: usize) -> Option<Shape> {
        self.frames.get(depth).map(|frame| frame.shape)
    }

    /// The shape of the container around the innermost.
    pub(super) fn parent(&self) -> Option<Shape> {
        self.shape_at(self.len().checked_sub(2)?)
    }

    /// Where the innermost container of this shape stands.
    pub(super) fn nearest(&self, shape: Shape) -> Option<usize> {
        let [object, array, parens] = self.nearest;
        let place = match shape {
            Shape::Object => object,
            Shape::Array => array,
            Shape::Parens => parens,
        };
        place.checked_sub(1)
    }

    pub(super) fn push(&mut self, mut frame: Frame) {
        let place = self.frames.len() + 1;
        let nearest = self.place(frame.shape);
        frame.same = std::mem::replace(nearest, place);
        self.frames.push(frame);
    }

    pub(super) fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        *self.place(frame.shape) = frame.same;
        Some(frame)
    }

    /// Reads the innermost container as one of another shape.
    pub(super) fn reshape(&mut self, shape: Shape) {
        if let Some(mut frame) = self.pop() {
            frame.shape = shape;
            self.push(frame);
        }
    }

    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.nearest = [0; 3];
    }

    /// The containers from the outermost to the innermost.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    fn place(&mut self, shape: Shape) -> &mut usize {
        let [object, array, parens] = &mut self.nearest;
        match shape {
            Shape::Object => object,
            Shape::Array => array,
            Shape::Parens => parens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nearest_equals_a_search(pushes in proptest::collection::vec(proptest::option::of(0usize..3), 0..60)) {
            let shapes = [Shape::Object, Shape::Array, Shape::Parens];
            let mut stack = Stack::default();
            for push in pushes {
                match push {
                    Some(shape) => stack.push(Frame::new(shapes[shape], 0, 0, None)),
                    None => drop(stack.pop()),
                }
                for shape in shapes {
                    let found = stack.frames.iter().rposition(|frame| frame.shape == shape);
                    prop_assert_eq!(stack.nearest(shape), found);
                }
            }
        }
    }
}
