//! The counts, and what they say.

/// The order-free element of a turn: equal for turns that make the same calls, each as often.
///
/// `calls` are 128-bit hashes of the calls. A turn of one call is that call's hash; an empty turn
/// is 0.
///
/// ```
/// use turnwarden_periodicity::turn_element;
///
/// assert_eq!(turn_element([7, 9]), turn_element([9, 7]));
/// assert_ne!(turn_element([7, 7]), turn_element([7]));
/// assert_eq!(turn_element([7]), 7);
/// ```
#[must_use]
pub fn turn_element(calls: impl IntoIterator<Item = u128>) -> u128 {
    calls.into_iter().fold(0, u128::wrapping_add)
}

/// For each period, how many elements in a row equal the one that many back.
///
/// Elements are 128-bit hashes; equal hashes are taken as equal elements. The last `revisable`
/// elements can still be changed ([`Self::revise`]), as when a result comes late. Size: 16 bytes
/// for each of `max_period + revisable` elements and 4 for each of `max_period * (revisable + 1)`
/// counts, made as elements come.
///
/// ```
/// use turnwarden_periodicity::Periods;
///
/// let mut periods = Periods::new(8, 2);
/// for element in [1, 2, 3, 1, 2, 3] {
///     periods.push(element);
/// }
/// assert_eq!(periods.run(3), 3);
/// assert_eq!(periods.shortest_period(2), Some(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periods {
    max_period: usize,
    revisable: usize,
    /// The last elements, newest last.
    elements: Vec<u128>,
    /// Rows of `max_period` runs as they were after each of the last elements, newest last.
    rows: Vec<u32>,
}

impl Periods {
    /// Counts periods from 1 to `max_period`; both numbers are taken as at least 1.
    #[must_use]
    pub fn new(max_period: usize, revisable: usize) -> Self {
        Self {
            max_period: max_period.max(1),
            revisable: revisable.max(1),
            elements: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// The longest period that is counted.
    #[must_use]
    pub fn max_period(&self) -> usize {
        self.max_period
    }

    /// Counts one more element. O(`max_period`).
    pub fn push(&mut self, element: u128) {
        let most_elements = self.max_period + self.revisable;
        let most_rows = self.max_period * (self.revisable + 1);
        if self.elements.len() >= most_elements {
            self.elements.remove(0);
        }
        if self.rows.len() >= most_rows {
            self.rows.drain(..self.max_period);
        }
        make_room(&mut self.elements, 1, most_elements);
        self.elements.push(element);
        make_room(&mut self.rows, self.max_period, most_rows);
        self.rows.resize(self.rows.len() + self.max_period, 0);
        self.count_at(0);
    }

    /// Changes the element `back` places before the last one (0 is the last), exactly as if it
    /// had been pushed so. O(`max_period * (back + 1)`).
    ///
    /// Returns false, and changes nothing, when it is no longer or not yet there.
    pub fn revise(&mut self, back: usize, element: u128) -> bool {
        if back >= self.revisable {
            return false;
        }
        let Some(old) = nth_last(&mut self.elements, back) else {
            return false;
        };
        if *old != element {
            *old = element;
            for at in (0..=back).rev() {
                self.count_at(at);
            }
        }
        true
    }

    /// How many elements in a row, up to the last, equal the one `period` back; 0 for a period
    /// that is not counted.
    #[must_use]
    pub fn run(&self, period: usize) -> usize {
        let row = self.row_start(0);
        let run = period
            .checked_sub(1)
            .filter(|&index| index < self.max_period)
            .and_then(|index| self.rows.get(row? + index));
        run.map_or(0, |&run| run as usize)
    }

    /// How many elements at the end are the same: 0 only before the first one.
    #[must_use]
    pub fn repeats(&self) -> usize {
        usize::from(!self.elements.is_empty()) + self.run(1)
    }

    /// The shortest period of 2 or more whose lap, of elements not all the same, fills the end of
    /// the sequence `laps` times. O(`max_period`).
    #[must_use]
    pub fn shortest_period(&self, laps: usize) -> Option<usize> {
        let again = laps.max(1) - 1;
        (2..=self.max_period).find(|&period| {
            let needed = period.saturating_mul(again);
            self.elements.len() >= period && self.run(period) >= needed && self.repeats() < period
        })
    }

    /// The last elements, newest last: at least `max_period` of them once there are so many.
    #[must_use]
    pub fn elements(&self) -> &[u128] {
        &self.elements
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.elements.clear();
        self.rows.clear();
    }

    /// Appends the state as bytes, for [`Self::read_from`].
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.elements.len() as u64).to_le_bytes());
        for element in &self.elements {
            bytes.extend_from_slice(&element.to_le_bytes());
        }
        for run in &self.rows {
            bytes.extend_from_slice(&run.to_le_bytes());
        }
    }

    /// Reads what [`Self::write_to`] wrote from the front of `bytes`, and steps over it, into a
    /// state made as [`Self::new`] makes it.
    ///
    /// `None` when the bytes end early, or hold more elements than such a state.
    pub fn read_from(max_period: usize, revisable: usize, bytes: &mut &[u8]) -> Option<Self> {
        let mut periods = Self::new(max_period, revisable);
        let elements = usize::try_from(u64::from_le_bytes(take(bytes)?)).ok()?;
        let rows = elements.min(periods.revisable.checked_add(1)?);
        let runs = rows.checked_mul(periods.max_period)?;
        let size = elements
            .checked_mul(16)?
            .checked_add(runs.checked_mul(4)?)?;
        let most_elements = periods.max_period.checked_add(periods.revisable)?;
        if elements > most_elements || bytes.len() < size {
            return None;
        }
        for _ in 0..elements {
            periods.elements.push(u128::from_le_bytes(take(bytes)?));
        }
        for _ in 0..runs {
            periods.rows.push(u32::from_le_bytes(take(bytes)?));
        }
        Some(periods)
    }

    /// Counts the runs at the element `back` places before the last.
    fn count_at(&mut self, back: usize) {
        let Some(start) = self.row_start(back) else {
            return;
        };
        let Some(at) = self.elements.len().checked_sub(back + 1) else {
            return;
        };
        let element = self.elements.get(at);
        for period in 1..=self.max_period {
            let index = start + period - 1;
            let is_equal = at
                .checked_sub(period)
                .is_some_and(|earlier| self.elements.get(earlier) == element);
            let before = index
                .checked_sub(self.max_period)
                .and_then(|before| self.rows.get(before))
                .map_or(0, |&run| run);
            if let Some(run) = self.rows.get_mut(index) {
                *run = if is_equal {
                    before.saturating_add(1)
                } else {
                    0
                };
            }
        }
    }

    /// Where the row of the element `back` places before the last begins.
    fn row_start(&self, back: usize) -> Option<usize> {
        let rows_after = back.checked_add(1)?.checked_mul(self.max_period)?;
        self.rows.len().checked_sub(rows_after)
    }
}

/// Makes room for `more` items: by doubling, but never for more than `most` in all.
fn make_room<T>(items: &mut Vec<T>, more: usize, most: usize) {
    if items.capacity() < items.len() + more {
        items.reserve_exact(items.len().max(more).min(most - items.len()));
    }
}

fn nth_last<T>(items: &mut [T], back: usize) -> Option<&mut T> {
    let index = items.len().checked_sub(back.checked_add(1)?)?;
    items.get_mut(index)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How many elements in a row equal the one `period` back, by looking.
    fn naive_run(elements: &[u128], period: usize) -> usize {
        (period..elements.len())
            .rev()
            .take_while(|&at| elements[at] == elements[at - period])
            .count()
    }

    /// The rule as the design words it.
    fn naive_shortest_period(elements: &[u128], max_period: usize, laps: usize) -> Option<usize> {
        (2..=max_period).find(|&period| {
            let Some(start) = elements.len().checked_sub(period * laps) else {
                return false;
            };
            let lap = &elements[elements.len() - period..];
            lap.iter().any(|element| element != &lap[0])
                && elements[start..].chunks(period).all(|chunk| chunk == lap)
        })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u128),
        Revise(usize, u128),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0_u128..3).prop_map(Step::Push),
            1 => (0_usize..5, 0_u128..3).prop_map(|(back, element)| Step::Revise(back, element)),
        ];
        proptest::collection::vec(step, 0..80)
    }

    proptest! {
        #[test]
        fn counts_equal_those_of_the_naive_oracle(
            steps in steps(),
            max_period in 1_usize..9,
            revisable in 0_usize..5,
        ) {
            let mut periods = Periods::new(max_period, revisable);
            let mut elements = Vec::new();
            for step in steps {
                match step {
                    Step::Push(element) => {
                        periods.push(element);
                        elements.push(element);
                    }
                    Step::Revise(back, element) => {
                        let is_there = back < revisable.max(1) && back < elements.len();
                        prop_assert_eq!(periods.revise(back, element), is_there);
                        if is_there {
                            let at = elements.len() - 1 - back;
                            elements[at] = element;
                        }
                    }
                }
                for period in 1..=max_period {
                    prop_assert_eq!(periods.run(period), naive_run(&elements, period));
                }
                for laps in 1..4 {
                    prop_assert_eq!(
                        periods.shortest_period(laps),
                        naive_shortest_period(&elements, max_period, laps)
                    );
                }
                prop_assert!(elements.ends_with(periods.elements()));
                prop_assert!(periods.elements().len() >= elements.len().min(max_period));
            }
        }

        #[test]
        fn a_snapshot_continues_as_the_original(
            before in proptest::collection::vec(0_u128..3, 0..30),
            after in proptest::collection::vec(0_u128..3, 0..30),
        ) {
            let mut original = Periods::new(8, 3);
            for element in before {
                original.push(element);
            }
            let mut bytes = vec![0xAA];
            original.write_to(&mut bytes);
            bytes.push(0xBB);
            let mut rest = &bytes[1..];
            let mut copy = Periods::read_from(8, 3, &mut rest).unwrap();
            prop_assert_eq!(rest, &[0xBB]);
            for element in after {
                original.push(element);
                copy.push(element);
            }
            prop_assert_eq!(original, copy);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..200),
        ) {
            let mut rest = bytes.as_slice();
            if let Some(mut periods) = Periods::read_from(8, 2, &mut rest) {
                periods.push(1);
                periods.revise(0, 2);
                let _period = periods.shortest_period(3);
            }
        }
    }

    #[test]
    fn runs_count_any_number_of_laps() {
        let mut periods = Periods::new(8, 1);
        (0..10_000).for_each(|index| periods.push(index % 5));
        assert_eq!(periods.run(5), 9_995);
        assert_eq!(periods.shortest_period(1_999), Some(5));
        assert_eq!(periods.elements().len(), 9);
    }

    #[test]
    fn equal_elements_are_a_repeat_and_no_period() {
        let mut periods = Periods::new(8, 1);
        (0..40).for_each(|_| periods.push(3));
        assert_eq!(periods.repeats(), 40);
        assert_eq!(periods.shortest_period(2), None);
    }

    #[test]
    fn a_late_result_joins_what_it_had_broken() {
        let mut periods = Periods::new(8, 2);
        for element in [1, 1, 1, 9, 1] {
            periods.push(element);
        }
        assert_eq!(periods.repeats(), 1);
        assert!(periods.revise(1, 1));
        assert_eq!(periods.repeats(), 5);
    }
}
