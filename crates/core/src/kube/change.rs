//! Change of objects that a watch reports.

#[derive(Debug)]
pub enum Change<K> {
    /// New or changed object.
    Applied(Box<K>),
    Deleted(Box<K>),
    /// All objects, listed when the watch begins, or begins again after a loss.
    Listed(Vec<K>),
}
