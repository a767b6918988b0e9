//! What every part of an invocation shares: whose its log lines are.

pub(crate) mod span;
