//! `spillway-bed faults`: every fault at every step of a drain, once and for ever.
//!
//! Each cell is a drain of its own on the real control plane. It ends in drained, or in a receipt that
//! says what was left and why, and never in a hang.
//!
//! # Layout
//! * this file: the command, and which cells there are;
//! * `step`: the steps of a drain, and the request that each one is known by;
//! * `fault`: the faults, and what makes them (pure);
//! * `cell`: one drain with one fault;
//! * `verdict`: what a cell came to, and whether it may (pure);
//! * `page`: the page that is printed and kept.

mod cell;
mod fault;
mod page;
mod step;
mod verdict;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;

use crate::error::BedError;
use crate::measure;
use crate::measure::machine::Machine;
use crate::world::World;
use fault::{Fault, Lasts};
use step::Step;
use verdict::Verdict;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many drains at a time.
    #[arg(long, default_value = "16")]
    at_once: NonZeroUsize,
    /// Only cells whose name contains this, such as `claim` or `watch, 410, once`; nothing is kept then.
    #[arg(long)]
    only: Option<String>,
    /// Where the page is kept; docs/faults.md of this repository when absent.
    #[arg(long)]
    page: Option<PathBuf>,
}

/// One fault at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    step: Step,
    fault: Fault,
    lasts: Lasts,
}

impl Cell {
    /// For a person: `evict, 403, once`.
    fn in_words(self) -> String {
        format!("{}, {}, {}", self.step.in_words(), self.fault.in_words(), self.lasts.in_words())
    }
}

/// What came of all cells.
#[derive(Debug)]
struct Results {
    cells: Vec<(Cell, Verdict)>,
    took: Duration,
}

/// Goes through the matrix, prints the page and keeps it. A cell that must not be as it is fails the command.
pub async fn run(options: Options) -> ExitCode {
    let kept = match (&options.page, &options.only) {
        (Some(path), _) => Some(path.clone()),
        (None, None) => Some(crate::setup::own_file("../../docs/faults.md")),
        (None, Some(_)) => None,
    };
    match results(&options).await.and_then(|results| keep(results, kept)) {
        Ok(results) if results.cells.iter().all(|(cell, verdict)| verdict.is_allowed(cell.lasts)) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot make the faults: {}", error.story());
            ExitCode::FAILURE
        }
    }
}

fn keep(results: Results, path: Option<PathBuf>) -> Result<Results, BedError> {
    let page = page::page(&results, &Machine::look());
    println!("{page}");
    if let Some(path) = path {
        measure::page::keep(&page, &path)?;
    }
    Ok(results)
}

async fn results(options: &Options) -> Result<Results, BedError> {
    let is_wanted = |cell: &Cell| options.only.as_ref().is_none_or(|text| cell.in_words().contains(text));
    let wanted: Vec<Cell> = all().into_iter().filter(is_wanted).collect();
    say(&format!("starting the world for {} drains", wanted.len()));
    let world = World::start().await?;
    let begin = Instant::now();
    let cells = stream::iter(wanted).map(async |cell| {
        let verdict = cell::drain(&world, cell).await;
        say(&format!("{}: {}", cell.in_words(), verdict.in_words()));
        (cell, verdict)
    });
    // In the order of the matrix, however long each took.
    let cells: Vec<(Cell, Verdict)> = cells.buffered(options.at_once.get()).collect().await;
    if cells.iter().any(|(cell, verdict)| !verdict.is_allowed(cell.lasts)) {
        world.keep_logs();
    }
    Ok(Results { cells, took: begin.elapsed() })
}

/// The matrix.
fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for step in Step::ALL {
        for fault in Fault::of(step) {
            let lasting = Lasts::ALL.into_iter().filter(|lasts| fault.can_last(*lasts));
            cells.extend(lasting.map(|lasts| Cell { step, fault, lasts }));
        }
    }
    cells
}

fn say(what: &str) {
    eprintln!("faults: {what}");
}
