//! Each action alone: what it sends to AWS and to the API server, and what it returns, also when they fail.

mod claim;
mod cordon;
mod drain;
mod dry_run;
mod fan_out;
mod hand_on;
mod identify;
mod launch;
mod lifecycle;
mod node_claim;
mod out_of_service;
mod postpone;
mod targets;
mod uncordon;
mod undo_check;
mod volumes;
