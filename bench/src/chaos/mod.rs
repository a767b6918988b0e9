//! `spillway-bench chaos`: many notices to nodes that come and go, while much goes wrong.
//!
//! What happens is drawn from a seed; how it interleaves is not. When all is quiet it is looked whether anything is as it must
//! not be, whatever went wrong.
//!
//! # Layout
//! * this file: the command, and what is kept of a run;
//! * `plan`: from a seed to what happens and when (pure); `story`: what AWS does with an instance (pure);
//! * `field`: the world with the function in it, through which the plan goes;
//! * `life`: one node from its coming to its end; `notice`: the events; `post`: their deliveries;
//! * `trouble`: what goes wrong, and what makes it;
//! * `verdict`: from what was seen to what must not be (pure); `moved`: the same of pods, with the API server's audit log;
//! * `page`: the page.

mod field;
mod life;
mod moved;
mod notice;
mod page;
mod plan;
mod post;
mod story;
mod trouble;
mod verdict;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spillway_bed::BedError;
use spillway_bed::lambda::LambdaOptions;

use crate::measure::circumstances::Circumstances;
use crate::measure::report;
use field::Came;
use moved::Figures;
use plan::Plan;
use verdict::{Handed, Verdict, Violation};

/// How often something came, by its name.
type Counts = BTreeMap<String, usize>;

#[derive(Debug, clap::Args)]
pub(crate) struct ChaosOptions {
    /// How many notices AWS gives at least, repeated deliveries not counted.
    #[arg(long, default_value = "500")]
    notices: NonZeroU32,
    /// Within how many minutes the nodes come that they are about.
    #[arg(long, default_value = "5")]
    minutes: NonZeroU32,
    /// Which plan; any when absent.
    #[arg(long)]
    seed: Option<u64>,
    /// The folder where the page and its raw results are kept; docs/measured/ of this repository when absent.
    #[arg(long)]
    keep_in: Option<PathBuf>,
}

/// What came of a run: what is kept, and what the page is rendered from.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChaosResults {
    circumstances: Circumstances,
    seed: u64,
    minutes: NonZeroU32,
    /// How many nodes each story had.
    stories: Counts,
    /// The notices that AWS gave, by their kinds.
    notices: Counts,
    /// Deliveries of the same notice once more.
    duplicates: usize,
    /// Deliveries that came later than they were sent.
    late: usize,
    /// What the function has had itself invoked with.
    continuations: Counts,
    /// What went wrong.
    troubles: Counts,
    /// How many requests the faults among it struck.
    struck: usize,
    /// How deliveries of each kind ended, by their last receipts.
    endings: BTreeMap<String, Counts>,
    /// Attempts that failed, by the type of the error.
    failed_attempts: Counts,
    receipts: usize,
    /// Texts in the failure queue.
    given_up: Counts,
    /// How the lifecycle actions ended.
    hooks: Counts,
    /// How many nodes were to be in use in the end.
    in_use: usize,
    /// What moved.
    figures: Figures,
    /// What would have been a violation, by why it is none.
    excuses: Counts,
    violations: Vec<Violation>,
}

/// Goes through a plan, prints the page and keeps it. A violation fails the command.
pub(crate) async fn run(options: ChaosOptions) -> ExitCode {
    let results = match results(&options).await {
        Ok(results) => results,
        Err(error) => return report::tell(Err::<String, _>(error)),
    };
    let folder = options.keep_in.unwrap_or_else(report::documents);
    let told = report::tell(report::keep(&results, Some(&folder)));
    if results.violations.is_empty() { told } else { ExitCode::FAILURE }
}

async fn results(options: &ChaosOptions) -> Result<ChaosResults, BedError> {
    let ChaosOptions { notices, minutes, seed, keep_in: _ } = *options;
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let command = format!("make chaos NOTICES={notices} MINUTES={minutes} SEED={seed}");
    say(&command);
    // Before anything of ours runs.
    let measuring = Circumstances::look(command, &LambdaOptions::default().binary).await;
    let plan = Plan::of(seed, notices.get(), minutes);
    let Came { seen, troubles, struck, log } = field::go_through(&plan).await?;
    let circumstances = measuring.over().await;

    let Verdict { violations, excuses, figures } = verdict::of(&seen);
    for violation in &violations {
        say(&format!("VIOLATION: {violation}"));
    }
    if !violations.is_empty() {
        say(&format!("the function's log is {}", log.display()));
    }
    let own = |is_own: bool| seen.handed.iter().filter(move |handed| handed.kind.is_own() == is_own);
    let notices: BTreeMap<_, _> = own(false).map(|handed| (&handed.event_id, handed.kind.in_words())).collect();
    let postings = plan.lives.iter().flat_map(|life| &life.postings);
    let attempts = seen.handed.iter().flat_map(|handed| &handed.attempts);
    let given_up = seen.handed.iter().filter(|handed| seen.given_up.contains(&handed.request_id));
    let hooks = seen.nodes.iter().flat_map(|ended| &ended.hooks);
    Ok(ChaosResults {
        circumstances,
        seed,
        minutes,
        stories: count(plan.lives.iter().map(|life| life.story.in_words())),
        duplicates: own(false).count() - notices.len(),
        notices: count(notices.into_values()),
        late: postings.filter(|posting| posting.delay > Duration::ZERO).count(),
        continuations: count(own(true).map(|handed| handed.kind.in_words())),
        troubles,
        struck,
        endings: endings(&seen.handed),
        failed_attempts: count(attempts.filter_map(|attempt| attempt.error.as_deref())),
        receipts: seen.handed.iter().map(Handed::receipts).sum(),
        given_up: count(given_up.map(|handed| handed.kind.in_words())),
        hooks: count(hooks.map(|ended_by| ended_by.as_deref().unwrap_or("waits"))),
        in_use: seen.nodes.iter().filter(|ended| ended.goes_on).count(),
        figures,
        excuses,
        violations,
    })
}

fn endings(handed: &[Handed]) -> BTreeMap<String, Counts> {
    let mut endings = BTreeMap::<String, Counts>::new();
    for one in handed {
        let ending = one.ending().unwrap_or("no receipt").to_owned();
        *endings.entry(one.kind.in_words().to_owned()).or_default().entry(ending).or_default() += 1;
    }
    endings
}

fn count(names: impl Iterator<Item = impl Into<String>>) -> Counts {
    let mut counts = Counts::new();
    for name in names {
        *counts.entry(name.into()).or_default() += 1;
    }
    counts
}

fn say(what: &str) {
    eprintln!("chaos: {what}");
}
