//! JSON as models write it: a resumable scanner that heals from a closed list of repairs.

/// What a repair did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RepairKind {
    /// A comma too many was dropped.
    CommaDropped,
}
