//! The drain of one node, decided: pods that leave, their deadlines and their results. The clock is handed in.
//!
//! From the ground up; none imports a later one: `deadline`, `do_not_disrupt`, `tier`, `plan`, `returns`, `request`, `answer`,
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
