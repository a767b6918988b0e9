//! Going on in a later invocation: until when, and which drains can wait for it.

pub mod limits;
pub mod patient;
