//! Sets up AWS clients, logs and metrics for every Lambda function.

pub mod aws;
pub mod emf;
pub mod logs;
