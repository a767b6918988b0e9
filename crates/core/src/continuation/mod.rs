//! Continuation of a notice's work in later invocations.

pub mod limits;
