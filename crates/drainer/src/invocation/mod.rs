//! What every part of an invocation shares: whose its log lines are, and how it tries again what fails.

pub(crate) mod retry;
pub(crate) mod span;
