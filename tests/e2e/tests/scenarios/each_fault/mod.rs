//! Each fault at each step of a drain, once and for ever. The catalogue is `spillway_bed::faults`.
//!
//! A case is a drain. A fault that passes must end in drained; a lasting fault may end in a receipt that names the fault and
//! the pods that are left. Receipts are true, and no drain hangs.
//!
//! A run tries one fixed case of each step. `SPILLWAY_FAULTS=all` tries every case, `SPILLWAY_FAULTS="evict, 404"` the cases
//! with that in their names. `case` runs a case, `verdict` judges its result (pure).
//!
//! Reason: connection.

mod case;
mod verdict;

use std::fmt;

use futures_util::{StreamExt as _, stream};
use spillway_bed::faults::{Fault, Means, Step};

/// Drains at a time. Most of a drain's time is waiting.
const AT_ONCE: usize = 8;

/// A fault at a step.
#[derive(Debug, Clone, Copy)]
struct Case {
    step: Step,
    fault: Fault,
    lasts: Lasts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// For one request, or for some seconds of a connection.
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
                // A new token is accepted.
                Fault { name: "token expired", .. } => &[Lasts::Once],
                _ => &[Lasts::Once, Lasts::ForEver],
            };
            cases.extend(lasting.iter().map(|lasts| Case { step, fault, lasts: *lasts }));
        }
    }
    cases
}

/// A case of each step, each of another fault than the step before.
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
async fn fault_ends_in_a_drained_node_or_is_named_in_the_receipt() {
    let cases = wanted();
    assert!(!cases.is_empty(), "SPILLWAY_FAULTS is `all` or a part of the name of a case, such as `evict, 404, once`");

    // Each in a task, so that a panic does not end the others.
    let tried = stream::iter(cases).map(async |case| (case, tokio::spawn(case::try_one(case)).await));
    let tried: Vec<_> = tried.buffer_unordered(AT_ONCE).collect().await;

    let failed = tried.iter().filter(|(_, ended)| ended.is_err()).map(|(case, _)| case.to_string());
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "of {} cases these failed, for the reasons above: {failed:#?}", tried.len());
}
