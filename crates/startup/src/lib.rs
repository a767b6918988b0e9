//! Start of every function.
//!
//! # Layout
//! * `aws`: configuration of AWS clients
//! * `logs`: log lines
//! * `emf`: metrics as log lines

pub mod aws;
pub mod emf;
pub mod logs;
