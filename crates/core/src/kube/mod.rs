//! Fields that are read from Kubernetes objects, and the API server's refusals. Plain data.

pub mod budget;
pub mod change;
pub mod metadata;
pub mod pod;
pub mod status;
