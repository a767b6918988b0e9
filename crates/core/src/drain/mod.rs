//! The drain of one node, decided: which pods leave, how and when, and what became of each. The clock is handed in.
//!
//! From the ground up; none imports a later one:
//! * `deadline`: how long there is, and what that means for a pod's grace
//! * `do_not_disrupt`: which pods say that they are not to be disrupted
//! * `tier`: in which order pods leave
//! * `plan`: which pods leave, which stay, and why
//! * `returns`: which pods are placed on the node although it is cordoned
//! * `request`, `answer`: a request that a pod leave, and what the API server answered
//! * `kubelet`: whether anybody is there to report a pod's end
//! * `pod`: one pod: its state, what blocks it, what comes next
//! * `budgets`: which pods that a budget blocks are evicted again, and when
//! * `blockage`: when it is published that something blocks the drain
//! * `progress_message`: how far it has come, in a sentence
//! * `report`: how it ended
//! * `ending`: when it is over
//! * `volumes`: which volumes are waited for when the last pod has gone
//! * `progress`: all pods: what is to be requested next, and what became of each
//! * `dry_run`: what a drain would come to

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
pub mod progress_message;
pub mod report;
pub mod request;
pub mod returns;
pub mod tier;
pub mod volumes;
