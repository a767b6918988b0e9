//! Decides how one node is drained: which pods leave, when each pod is evicted or deleted, and when the drain ends.
//!
//! Each module imports only modules before it in this list:
//! * [`deadline`] computes grace periods and deletion times from the time at which AWS stops or terminates the instance.
//! * [`do_not_disrupt`], [`tier`], [`plan`] and [`returns`] decide which pods leave, and in which order.
//! * [`request`] and [`answer`] describe evictions and deletions, and interpret the API server's answers.
//! * [`kubelet`], [`pod`] and [`budgets`] track the kubelet, each pod, and each PodDisruptionBudget (PDB).
//! * [`blockage`] decides which events about blocked pods are published. [`report`] and [`ending`] decide when the drain ends.
//!   [`volumes`] names the volumes to wait for afterwards.
//! * [`progress`] combines the modules above into one drain; [`dry_run`] predicts the result of a drain.

pub mod answer;
pub mod blockage;
pub mod budgets;
pub mod deadline;
pub mod do_not_disrupt;
pub mod dry_run;
pub mod ending;
pub mod kubelet;
pub mod plan;
pub mod pod;
pub mod progress;
pub mod report;
pub mod request;
pub mod returns;
pub mod tier;
pub mod volumes;
