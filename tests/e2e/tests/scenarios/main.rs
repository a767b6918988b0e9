//! The scenarios: a file for each subject, a test for each sentence. One program, so that they share one world and wait
//! side by side.

mod admission;
mod after_drain;
mod announced;
mod answers;
mod budgets;
mod called_off;
mod calls;
mod continued;
mod doctor;
mod drain;
mod dry_run;
mod each_notice;
mod edges;
mod faults;
mod hooks;
mod karpenter;
mod kept_waiting;
mod killed;
mod launch;
mod maintenance;
mod marks;
mod messages;
mod no_leader;
mod node_events;
mod not_ours;
mod notices;
mod odd_pods;
mod owners;
mod rules;
mod sinks;
mod stranded;
mod undo;
mod undo_checks;
mod waiting;
mod webhooks;
