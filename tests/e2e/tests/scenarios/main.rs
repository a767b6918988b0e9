//! The scenarios: a file for each subject, a test for each sentence. One program, so that they share one world and wait
//! side by side.

mod answers;
mod budgets;
mod calls;
mod continued;
mod drain;
mod dry_run;
mod each_notice;
mod faults;
mod hooks;
mod karpenter;
mod killed;
mod launch;
mod maintenance;
mod marks;
mod no_leader;
mod notices;
mod odd_pods;
mod owners;
mod rules;
mod stranded;
mod undo;
mod undo_checks;
mod waiting;
