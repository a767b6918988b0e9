//! `spillway-bed bench`: how fast and how small the function is, as counts and ratios.
//!
//! Nothing here judges by a clock alone: a time is set against another that was taken in the same
//! run, in turn with it, so that a slow or busy machine slows both.
//!
//! # Layout
//! * this file: what is measured, in which order;
//! * `programs`: the binaries that are measured, and what they are measured against;
//! * `starts`: from the execution of a binary to its first poll of the Runtime API;
//! * `field`: a world with a function, a far-away API server and nodes to drain;
//! * `drain`: one drain, as the audit log and the AWS side's journal saw it;
//! * `floor`: one run of the bare loop;
//! * `results`, `goals`: what came of all runs, and whether it is what was wanted (pure);
//! * `size`: of the package;
//! * `report`: the page that is printed and kept;
//! * [`crate::measure`] has what it shares with `peers`.

mod drain;
mod field;
mod floor;
mod goals;
mod programs;
mod report;
mod results;
mod size;
mod starts;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::error::BedError;
use crate::measure::machine::{self, Machine};
use crate::measure::{self, build};
use drain::Drain;
use field::Field;
pub use programs::Named;
use programs::Programs;
use results::{Claims, Results, Round, Turn};
use size::Size;

/// As many pods as a node usually takes.
const PODS: usize = 110;
/// The round trips that are added on the way to the API server.
const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(20);
/// A start takes a hundredth of a second, so there can be many.
const STARTS_A_RUN: usize = 5;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often everything is measured.
    #[arg(long, default_value = "15")]
    runs: NonZeroUsize,
    /// Where the page is kept; docs/bench.md of this repository when absent.
    #[arg(long)]
    page: Option<PathBuf>,
    #[command(flatten)]
    programs: Named,
}

/// Measures, prints the page and keeps it.
pub async fn run(options: Options) -> ExitCode {
    measure::page::tell(page(&options).await)
}

async fn page(options: &Options) -> Result<String, BedError> {
    let runs = options.runs.get();
    let programs = Programs::find(&options.programs)?;
    let machine = Machine::look();
    // Before anything of ours runs.
    let busy_before = machine::busy().await;
    let size = Size::of(&programs)?;
    say("starts of the binary, before anything else runs");
    let starts = starts::measure(&programs, runs * STARTS_A_RUN).await?;

    say("starting the world");
    let mut field = Field::set(&programs).await?;
    let (mut rounds, mut claimed) = (Vec::new(), Vec::new());
    for run in 1..=runs {
        say(&format!("run {run} of {runs}: {PODS} pods, near and far, in turn with the floor"));
        rounds.push(round(&mut field, run).await?);
    }
    for run in 1..=runs {
        say(&format!("run {run} of {runs}: cold and warm start"));
        claimed.push(claims(&mut field).await?);
    }
    let rests = field.rests;
    drop(field);
    let busy = [busy_before, machine::busy().await].into_iter().flatten().collect();

    let results = Results { busy, rests, size, starts, rounds, claims: claimed };
    let page = report::page(&results, &programs, &machine);
    let path = options.page.clone().unwrap_or_else(|| crate::setup::own_file("../../docs/bench.md"));
    measure::page::keep(&page, &path)?;
    Ok(page)
}

async fn round(field: &mut Field, run: usize) -> Result<Round, BedError> {
    // Who comes first changes, so that neither always finds the machine as the other has left it.
    let drain_first = run.is_multiple_of(2);
    Ok(Round { near: turn(field, NEAR, drain_first).await?, far: turn(field, FAR, drain_first).await? })
}

async fn turn(field: &mut Field, distance: Duration, drain_first: bool) -> Result<Turn, BedError> {
    let early = if drain_first { Some(drain(field, distance).await?) } else { None };
    let node = field.full_node(PODS).await?;
    let floor = floor::run(field, &node, distance).await?;
    let drain = match early {
        Some(drain) => drain,
        None => drain(field, distance).await?,
    };
    Ok(Turn { drain, floor })
}

async fn drain(field: &mut Field, distance: Duration) -> Result<Drain, BedError> {
    let node = field.full_node(PODS).await?;
    drain::warm(field, &node, distance).await
}

/// A drain of an empty node by a new process and by a warm one, both far away: only the way to the
/// claim matters.
async fn claims(field: &mut Field) -> Result<Claims, BedError> {
    let (first, second) = (field.full_node(0).await?, field.full_node(0).await?);
    let cold = drain::cold(field, &first, FAR).await?;
    let warm = drain::warm(field, &second, FAR).await?;
    Ok(Claims { cold: cold.to_claim, warm: warm.to_claim })
}

fn say(what: &str) {
    eprintln!("bench: {what}");
}
