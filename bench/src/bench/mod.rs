//! `spillway-bench bench`: how fast and how small the function is, as counts and ratios.
//!
//! Nothing here judges by a clock alone: a time is set against another that was taken in the same
//! run, in turn with it, so that a slow or busy machine slows both.
//!
//! # Layout
//! * this file: what is measured, in which order;
//! * `programs`: the binaries that are measured, and what they are measured against;
//! * `starts`: from the execution of a binary to its first poll of the Runtime API;
//! * `fixture`: a world with a function, a far-away API server and nodes to drain;
//! * `drain`: one drain, as the audit log and the AWS side's journal saw it;
//! * `baseline`: one run of the bare loop;
//! * `results`, `requirements`: what came of all runs, and whether it is what is required (pure);
//! * `size`: of the package;
//! * `page`: the page;
//! * [`crate::measure`] has what it shares with `peers`.

mod baseline;
mod drain;
mod fixture;
mod page;
mod programs;
mod requirements;
mod results;
mod size;
mod starts;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use spillway_bed::BedError;
use spillway_bed::processor_share::ProcessorShare;

use crate::measure::circumstances::Circumstances;
use crate::measure::report;
use drain::Drain;
use fixture::BenchFixture;
use programs::{Named, Programs};
pub(crate) use results::BenchResults;
use results::{Claims, Round, Turn};
use size::Size;

/// As many pods as a node usually takes.
const PODS: usize = 110;
/// The round trips that are added on the way to the API server.
const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(20);
/// What the template gives the function.
const MEMORY_MB: u32 = 256;
/// A start takes a hundredth of a second, so there can be many.
const STARTS_A_RUN: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct BenchOptions {
    /// How often everything is measured.
    #[arg(long, default_value = "100")]
    runs: NonZeroUsize,
    /// The folder where the page and its raw results are kept; docs/measured/ of this repository when absent.
    #[arg(long)]
    keep_in: Option<PathBuf>,
    #[command(flatten)]
    programs: Named,
}

/// Measures, prints the page and keeps it.
pub(crate) async fn run(options: BenchOptions) -> ExitCode {
    report::tell(measured(&options).await)
}

async fn measured(options: &BenchOptions) -> Result<String, BedError> {
    let runs = options.runs.get();
    let programs = Programs::find(&options.programs)?;
    // Before anything of ours runs.
    let measuring = Circumstances::look(format!("make bench RUNS={runs}"), &programs.drain).await;
    let size = Size::of(&programs)?;
    say("starts of the binary, before anything else runs");
    let starts = starts::measure(&programs, runs * STARTS_A_RUN).await?;

    say("starting the world");
    let mut fixture = BenchFixture::start(&programs).await?;
    // Not counted: from here on the function is warm.
    let empty = fixture.full_node(0).await?;
    drain::cold(&mut fixture, &empty, NEAR).await?;
    let (mut rounds, mut claims, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=runs {
        say(&format!("run {run} of {runs}: {PODS} pods, near and far, in turn with the baseline"));
        let round = round(&mut fixture, run).await;
        rounds.extend(unless_failed(round, &mut failed, &format!("run {run}"))?);
    }
    for run in 1..=runs {
        say(&format!("run {run} of {runs}: cold and warm start"));
        let both = both_claims(&mut fixture).await;
        claims.extend(unless_failed(both, &mut failed, &format!("run {run}, an empty node"))?);
    }
    let rests = fixture.rests;
    drop(fixture);
    if rounds.is_empty() || claims.is_empty() {
        let seen = failed.join("; ");
        return Err(BedError::NotMeasured { wanted: "a drain".to_owned(), seen });
    }

    let circumstances = measuring.over().await;
    let results = BenchResults { circumstances, rests, size, starts, rounds, claims, failed };
    report::keep(&results, Some(&options.keep_in.clone().unwrap_or_else(report::documents)))
}

/// A drain that failed is told on the page; whatever else fails ends the measurement.
fn unless_failed<T>(came: Result<T, BedError>, failed: &mut Vec<String>, what: &str) -> Result<Option<T>, BedError> {
    match came {
        Ok(came) => Ok(Some(came)),
        Err(error @ BedError::NotDrained { .. }) => {
            say(&error.story());
            failed.push(format!("{what}: {}", error.story()));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn round(fixture: &mut BenchFixture, run: usize) -> Result<Round, BedError> {
    // Who comes first changes, so that neither always finds the machine as the other has left it.
    let drain_first = run.is_multiple_of(2);
    let (near, far) = (turn(fixture, NEAR, drain_first).await?, turn(fixture, FAR, drain_first).await?);
    Ok(Round { near, far, at_share: at_share(fixture).await? })
}

/// A drain from far away with the share of a processor that Lambda gives the function; none where nothing can be limited.
async fn at_share(fixture: &mut BenchFixture) -> Result<Option<Drain>, BedError> {
    let Ok(share) = ProcessorShare::of_memory(MEMORY_MB) else { return Ok(None) };
    // A process of its own, which ends before its share does.
    fixture.lambda.recycle();
    let empty = fixture.full_node(0).await?;
    drain::warm(fixture, &empty, FAR).await?;
    for id in fixture.lambda.process_ids() {
        share.limit(id).map_err(BedError::io("limit the function's processor"))?;
    }
    let drained = drain(fixture, FAR).await;
    let empty = fixture.full_node(0).await?;
    drain::cold(fixture, &empty, NEAR).await?;
    drained.map(Some)
}

async fn turn(fixture: &mut BenchFixture, distance: Duration, drain_first: bool) -> Result<Turn, BedError> {
    let early = if drain_first { Some(drain(fixture, distance).await?) } else { None };
    let node = fixture.full_node(PODS).await?;
    let baseline = baseline::run(fixture, &node, distance).await?;
    let drain = match early {
        Some(drain) => drain,
        None => drain(fixture, distance).await?,
    };
    Ok(Turn { drain, baseline })
}

async fn drain(fixture: &mut BenchFixture, distance: Duration) -> Result<Drain, BedError> {
    let node = fixture.full_node(PODS).await?;
    drain::warm(fixture, &node, distance).await
}

/// A drain of an empty node by a new process and by a warm one, both far away: only the way to the
/// claim matters.
async fn both_claims(fixture: &mut BenchFixture) -> Result<Claims, BedError> {
    let (first, second) = (fixture.full_node(0).await?, fixture.full_node(0).await?);
    let cold = drain::cold(fixture, &first, FAR).await?;
    let warm = drain::warm(fixture, &second, FAR).await?;
    Ok(Claims { cold: cold.to_claim, warm: warm.to_claim })
}

fn say(what: &str) {
    eprintln!("bench: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_is_measured_with_the_memory_that_the_template_gives_it() {
        let template = include_str!("../../../template.yaml");
        let (_, function) = template.split_once("\n  Drain:\n").expect("the function");
        let (_, memory) = function.split_once("MemorySize: ").expect("its memory");
        assert_eq!(memory.lines().next(), Some(MEMORY_MB.to_string().as_str()));
    }
}
