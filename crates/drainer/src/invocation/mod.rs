//! Log span of an invocation.

pub(crate) mod span;
