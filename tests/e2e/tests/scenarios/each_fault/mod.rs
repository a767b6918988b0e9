//! Each fault that passes at each step of a drain. The catalogue is `spillway_bed::faults`.
//!
//! A case is a drain with one fault. It must end in drained, by its first invocation unless a right was missing, and its receipt
//! is true. Lasting faults are stories and tests of actions.
//!
//! A run tries one fixed case of each step. `SPILLWAY_FAULTS=all` tries every case, `SPILLWAY_FAULTS="evict, 404"` the cases
//! with that in their names.
//!
//! Reason: connection.

mod case;

use std::fmt;

use futures_util::{StreamExt as _, stream};
use spillway_bed::faults::{Fault, Step};

/// Drains at a time. Most of a drain's time is waiting.
const AT_ONCE: usize = 8;

/// A fault at a step.
#[derive(Debug, Clone, Copy)]
struct Case {
    step: Step,
    fault: Fault,
}

/// Such as `evict, 403`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.step.name, self.fault.name)
    }
}

/// The wanted cases. By default each is of another fault than that of the step before.
fn wanted() -> Vec<Case> {
    let wanted = std::env::var("SPILLWAY_FAULTS");
    let of_step = |(number, step): (usize, Step)| {
        let cases = Fault::of(step).into_iter().map(move |fault| Case { step, fault });
        let mut cases: Vec<Case> = cases.collect();
        match wanted.as_deref() {
            Ok("all") => {}
            Ok(part) => cases.retain(|case| case.to_string().contains(part)),
            Err(_) => cases = vec![cases[number * 5 % cases.len()]],
        }
        cases
    };
    Step::ALL.into_iter().enumerate().flat_map(of_step).collect()
}

#[tokio::test]
async fn drain_with_a_fault_that_passes_ends_in_drained() {
    let cases = wanted();
    assert!(!cases.is_empty(), "SPILLWAY_FAULTS is `all` or a part of the name of a case, such as `evict, 404`");

    // Each in a task, so that a panic does not end the others.
    let tried = stream::iter(cases).map(async |case| (case, tokio::spawn(case::try_one(case)).await));
    let tried: Vec<_> = tried.buffer_unordered(AT_ONCE).collect().await;

    let failed = tried.iter().filter(|(_, ended)| ended.is_err()).map(|(case, _)| case.to_string());
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "of {} cases these failed, for the reasons above: {failed:#?}", tried.len());
}
