//! What an invocation does with calls that fail.

pub(crate) mod retry;
