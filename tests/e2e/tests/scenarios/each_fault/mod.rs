//! Each fault at each step of a drain, once and for ever. The catalogue is `spillway_bed::faults`.
//!
//! A case is a drain of its own. A fault that passes must end in drained; one that lasts may end in a receipt that names
//! the fault and the pods that are left. No receipt says what is not so, and nothing hangs.
//!
//! A run tries one fixed case of each step. `SPILLWAY_FAULTS=all` tries every case, `SPILLWAY_FAULTS="evict, 404"` those whose
//! names contain that.
//!
//! # Layout
//! * this file: which cases there are, and which are tried;
//! * `case`: one drain with one fault;
//! * `verdict`: what a case may come to (pure).
//!
//! Reason: connection.

mod case;
mod verdict;

use std::fmt;

use futures_util::{StreamExt as _, stream};
use spillway_bed::faults::{Fault, Means, Step};

/// Drains at a time. Most of a drain's time is waiting.
const AT_ONCE: usize = 8;

/// One fault at one step.
#[derive(Debug, Clone, Copy)]
struct Case {
    step: Step,
    fault: Fault,
    lasts: Lasts,
}

/// How long a fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// One request, or a few seconds of a connection.
    Once,
    ForEver,
}

/// Such as `evict, 403, once`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasts = if self.lasts == Lasts::Once { "once" } else { "for ever" };
        write!(f, "{}, {}, {lasts}", self.step.name, self.fault.name)
    }
}

fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for step in Step::ALL {
        for fault in Fault::of(step) {
            let lasting: &[Lasts] = match fault {
                Fault { means: Means::Endpoint, .. } => &[Lasts::ForEver],
                // For one request it is no more than a refused token, and every new token is a good one.
                Fault { name: "token expired", .. } => &[Lasts::Once],
                _ => &[Lasts::Once, Lasts::ForEver],
            };
            cases.extend(lasting.iter().map(|lasts| Case { step, fault, lasts: *lasts }));
        }
    }
    cases
}

/// One case of each step, of another fault than the step's before.
fn sample() -> Vec<Case> {
    let cases = all();
    let of_step = |(number, step): (usize, &Step)| {
        let mut cases = cases.iter().filter(|case| case.step == *step);
        let place = number * 5 % cases.clone().count();
        cases.nth(place).copied().expect("the place is one of them")
    };
    Step::ALL.iter().enumerate().map(of_step).collect()
}

fn wanted() -> Vec<Case> {
    match std::env::var("SPILLWAY_FAULTS").as_deref() {
        Ok("all") => all(),
        Ok(part) => all().into_iter().filter(|case| case.to_string().contains(part)).collect(),
        Err(_) => sample(),
    }
}

#[tokio::test]
async fn a_fault_ends_in_a_drained_node_or_in_a_receipt_that_names_it() {
    let cases = wanted();
    assert!(!cases.is_empty(), "SPILLWAY_FAULTS is `all` or a part of the name of a case, such as `evict, 404, once`");

    // Each is a task, so that one that panics does not end the others.
    let tried = stream::iter(cases).map(async |case| (case, tokio::spawn(case::try_one(case)).await));
    let tried: Vec<_> = tried.buffer_unordered(AT_ONCE).collect().await;

    let failed: Vec<String> =
        tried.iter().filter(|(_, ended)| ended.is_err()).map(|(case, _)| case.to_string()).collect();
    assert!(
        failed.is_empty(),
        "of {} cases these are not as required, for the reasons above: {failed:#?}",
        tried.len()
    );
}
