//! Kubernetes objects with only the fields that Spillway reads, and error responses of the API server.

pub mod budget;
pub mod change;
pub mod metadata;
pub mod pod;
pub mod status;
