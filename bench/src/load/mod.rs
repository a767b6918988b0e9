//! `spillway-bench load`: what a drain costs in a large cluster, in counts.
//!
//! # Layout
//! * this file: what is measured, in which order; [`spillway_bed::load`] drains, here and in the end-to-end tests;
//! * `programs`: what the cluster itself needed;
//! * `page`: the page;
//! * [`spillway_bed::filler`] makes the cluster large, [`crate::measure`] has what it shares with `bench`.

mod page;
mod programs;

use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use spillway_bed::filler::Filler;
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::load::{self, Cost, Load};
use spillway_bed::{BedError, NodeOptions, World};

use crate::measure;
use crate::measure::circumstances::Circumstances;
use crate::measure::report;
use programs::Program;

/// Pods of a node that has more than most may have.
const MANY_PODS: u32 = 300;

#[derive(Debug, clap::Args)]
pub(crate) struct LoadOptions {
    #[command(flatten)]
    filler: Filler,
    /// The folder where the page and its raw results are kept; docs/measured/ of this repository when absent.
    #[arg(long)]
    keep_in: Option<PathBuf>,
}

/// What came of a run: what is kept, and what the page is rendered from.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadResults {
    circumstances: Circumstances,
    filler: Filler,
    load: Load,
    /// In the large cluster, a node of [`MANY_PODS`].
    many: Cost,
    /// What held the cluster.
    programs: Vec<Program>,
}

/// Measures, prints the page and keeps it. A drain that fails ends it: there is no page then.
pub(crate) async fn run(options: LoadOptions) -> ExitCode {
    report::tell(measured(&options).await)
}

async fn measured(options: &LoadOptions) -> Result<String, BedError> {
    let filler = options.filler;
    let command = format!("make load NODES={} PODS={}", filler.nodes, filler.pods);
    // Before anything of ours runs.
    let measuring = Circumstances::look(command, &LambdaOptions::default().binary).await;
    let world = World::start_with(measure::plain_world_options()).await?;
    let load = load::measure(&world, filler).await?;
    let many_fit = NodeOptions { pods: MANY_PODS, ..NodeOptions::default() };
    let many = load::of_drain(&world, "load-many", many_fit, MANY_PODS as usize).await?;
    let programs = programs::of(&world.dir).map_err(BedError::io("read what the programs used"))?;
    drop(world);

    let results = LoadResults { circumstances: measuring.over().await, filler, load, many, programs };
    report::keep(&results, Some(&options.keep_in.clone().unwrap_or_else(report::documents)))
}
