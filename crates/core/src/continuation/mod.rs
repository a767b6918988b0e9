//! Continues the work on a notice in later invocations.

pub mod limits;
