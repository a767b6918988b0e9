//! What a watch reports of objects.

#[derive(Debug)]
pub enum Change<K> {
    /// One is there, new or changed.
    Seen(Box<K>),
    Gone(Box<K>),
    /// These are there, and no others: the watch begins, or had lost its place.
    OnlyThese(Vec<K>),
}
