//! The fields that are read of Kubernetes' objects, and the API server's refusals. Plain data.
//!
//! * `metadata`: the fields of an object's metadata
//! * `pod`, `budget`: the fields of a pod and a PodDisruptionBudget
//! * `change`: changes that a watch reports
//! * `status`: refusals of the API server

pub mod budget;
pub mod change;
pub mod metadata;
pub mod pod;
pub mod status;
