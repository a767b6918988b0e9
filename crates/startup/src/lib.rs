//! What every function starts with.
//!
//! # Layout
//! * `settings`: reading the environment
//! * `aws`: what every AWS client is made with
//! * `logs`: the log's lines

pub mod aws;
pub mod logs;
pub mod settings;
