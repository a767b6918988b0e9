//! Each action alone: what it sends to AWS and to the API server, and what it returns, also when they fail.

mod claim;
mod conditions;
mod continue_next;
mod cordon;
mod drain;
mod dry_run;
mod fan_out;
mod found;
mod identify;
mod launch;
mod lifecycle;
mod node_claim;
mod out_of_service;
mod pace;
mod postpone;
mod targets;
mod uncordon;
mod undo_check;
mod volumes;

use spillway_core::outcome::{DrainOutcome, Outcome};
use spillway_receipt::Counts;

use super::Next;
use crate::test_support::api_server::NODE;

/// So many pods had to leave, and all have gone.
fn drained(moved: usize) -> Next {
    let counts = Counts { moved, lost: 0, unconfirmed: 0 };
    DrainOutcome::Drained { node: NODE.to_owned(), counts }.into()
}

/// What the notice came to.
fn done(next: Next) -> Outcome {
    match next {
        Next::Done(outcome) => outcome,
        Next::DecideAgain(_) => panic!("{next:?}"),
    }
}
