//! The drain of one node, decided: pods that leave, their deadlines and their results. The clock is handed in.
//!
//! From the ground up; none imports a later one:
//! * `deadline`: the drain's window, a pod's grace and last safe moment
//! * `do_not_disrupt`: pods with a do-not-disrupt annotation
//! * `tier`: order in which pods leave
//! * `plan`: pods that leave, pods that stay, and the reason
//! * `returns`: pods that are placed on the cordoned node
//! * `request`, `answer`: a pod's eviction or deletion, and the API server's answer
//! * `kubelet`: silence of the node's kubelet
//! * `pod`: one pod: its state, its blocker, its next request
//! * `budgets`: pods that a PDB blocks, and their next eviction
//! * `blockage`: events about a blocked drain
//! * `report`: result of a drain
//! * `ending`: end of a drain
//! * `volumes`: volumes that are waited for after the last pod
//! * `progress`: all pods: the next requests, and the result of each
//! * `dry_run`: preview of a drain

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
