//! `spillway-bench faults`: each fault at each step of a drain, once and for ever.
//!
//! Each case is a drain of its own on the real control plane. It ends in drained, or in a receipt that
//! says what was left and why, and never in a hang.
//!
//! # Layout
//! * this file: the command, and which cases there are;
//! * `step`: the steps of a drain, and the request that each one is known by;
//! * `fault`: the faults, and what makes them (pure);
//! * `case`: one drain with one fault;
//! * `result`: what a case came to, and whether it may (pure);
//! * `page`: the page.

mod case;
pub(crate) mod fault;
mod page;
mod result;
pub(crate) mod step;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::{BedError, World};

use crate::measure::circumstances::Circumstances;
use crate::measure::report::{self, Report};
use fault::{Fault, Lasts};
use result::CaseResult;
use step::Step;

#[derive(Debug, clap::Args)]
pub(crate) struct FaultsOptions {
    /// How many drains at a time.
    #[arg(long, default_value = "16")]
    at_once: NonZeroUsize,
    /// Only cases whose name contains this, such as `claim` or `watch, 410, once`; nothing is kept then.
    #[arg(long)]
    only: Option<String>,
    /// The folder where the page and its raw results are kept; docs/ of this repository when absent.
    #[arg(long)]
    keep_in: Option<PathBuf>,
}

/// One fault at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FaultCase {
    step: Step,
    fault: Fault,
    lasts: Lasts,
}

impl FaultCase {
    /// For a person: `evict, 403, once`.
    fn in_words(self) -> String {
        format!("{}, {}, {}", self.step.in_words(), self.fault.in_words(), self.lasts.in_words())
    }
}

/// What came of all cases: what is kept, and what the page is rendered from.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FaultsResults {
    circumstances: Circumstances,
    at_once: NonZeroUsize,
    cases: Vec<Tried>,
}

/// A case, and what it came to.
#[derive(Debug, Serialize, Deserialize)]
struct Tried {
    case: FaultCase,
    result: CaseResult,
}

impl Tried {
    fn is_allowed(&self) -> bool {
        self.result.is_allowed(self.case)
    }
}

impl Report for FaultsResults {
    const FILE: &'static str = "faults";

    fn page(&self) -> String {
        page::page(self)
    }
}

/// Goes through the matrix, prints the page and keeps it. A case that must not be as it is fails the command.
pub(crate) async fn run(options: FaultsOptions) -> ExitCode {
    let folder = match (&options.keep_in, &options.only) {
        (Some(folder), _) => Some(folder.clone()),
        (None, None) => Some(report::documents()),
        (None, Some(_)) => None,
    };
    let results = match results(&options).await {
        Ok(results) => results,
        Err(error) => return report::tell(Err::<String, _>(error)),
    };
    let told = report::tell(report::keep(&results, folder.as_deref()));
    if results.cases.iter().all(Tried::is_allowed) { told } else { ExitCode::FAILURE }
}

async fn results(options: &FaultsOptions) -> Result<FaultsResults, BedError> {
    let is_wanted = |case: &FaultCase| options.only.as_ref().is_none_or(|text| case.in_words().contains(text));
    let wanted: Vec<FaultCase> = all().into_iter().filter(is_wanted).collect();
    // Before anything of ours runs.
    let only = options.only.as_ref().map_or_else(String::new, |only| format!(" ONLY=\"{only}\""));
    let measuring = Circumstances::look(format!("make faults{only}"), &LambdaOptions::default().binary).await;
    say(&format!("starting the world for {} drains", wanted.len()));
    let world = World::start().await?;
    let cases = stream::iter(wanted).map(async |case| {
        let result = case::drain(&world, case).await;
        say(&format!("{}: {}", case.in_words(), result.in_words()));
        Tried { case, result }
    });
    // In the order of the matrix, however long each took.
    let cases: Vec<Tried> = cases.buffered(options.at_once.get()).collect().await;
    if !cases.iter().all(Tried::is_allowed) {
        world.keep_logs();
    }
    drop(world);
    Ok(FaultsResults { circumstances: measuring.over().await, at_once: options.at_once, cases })
}

/// The matrix.
fn all() -> Vec<FaultCase> {
    let mut cases = Vec::new();
    for step in Step::ALL {
        for fault in Fault::of(step) {
            let lasting = Lasts::ALL.into_iter().filter(|lasts| fault.can_last(*lasts));
            cases.extend(lasting.map(|lasts| FaultCase { step, fault, lasts }));
        }
    }
    cases
}

fn say(what: &str) {
    eprintln!("faults: {what}");
}
