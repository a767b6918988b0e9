//! Start of every function.

pub mod aws;
pub mod emf;
pub mod logs;
