//! What is read of Kubernetes' objects, and what the API server's answers mean. Plain data.
//!
//! * `metadata`: an object's metadata, as much of it as is read
//! * `pod`, `budget`: a pod and a PodDisruptionBudget, as much of each as a drain looks at
//! * `change`: what a watch reports of objects
//! * `status`: what a refusal of the API server says

pub mod budget;
pub mod change;
pub mod metadata;
pub mod pod;
pub mod status;
