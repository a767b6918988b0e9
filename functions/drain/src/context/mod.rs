//! The clients, and what one notice is about.

pub(crate) mod cluster;
pub(crate) mod target;
