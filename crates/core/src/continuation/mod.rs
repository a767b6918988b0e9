//! Going on in a later invocation: until when.

pub mod limits;
