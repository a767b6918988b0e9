//! Change that a Kubernetes watch reports.

#[derive(Debug)]
pub enum Change<K> {
    /// New or changed object.
    Applied(Box<K>),
    Deleted(Box<K>),
    /// All objects, from the list request that starts or restarts the watch.
    Listed(Vec<K>),
}
