//! What every function starts with.
//!
//! # Layout
//! * `aws`: what every AWS client is made with
//! * `logs`: the log's lines
//! * `emf`: metrics, as a line of the log

pub mod aws;
pub mod emf;
pub mod logs;
