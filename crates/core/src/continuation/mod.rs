//! Continuation of a notice in later invocations.

pub mod limits;
