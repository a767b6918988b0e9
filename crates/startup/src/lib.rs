//! Start of every function: AWS configuration, logs and metrics.

pub mod aws;
pub mod emf;
pub mod logs;
