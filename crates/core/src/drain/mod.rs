//! Decisions about the drain of one node: pods that leave, their deadlines and their results. The caller passes the time.
//!
//! Each module imports only modules before it: `deadline`, `do_not_disrupt`, `tier`, `plan`, `returns`, `request`, `answer`,
//! `kubelet`, `pod`, `budgets`, `blockage`, `report`, `ending`, `volumes`, `progress`, `dry_run`.

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
