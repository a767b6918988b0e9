//! `spillway-bed load`: what a drain costs in a large cluster, in counts.
//!
//! # Layout
//! * this file: what is measured, in which order;
//! * `cost`: one drain;
//! * `programs`: what the cluster itself needed;
//! * `page`: the page that is printed and kept;
//! * [`crate::filler`] makes the cluster large, [`crate::measure`] has what it shares with `bench`.

mod cost;
mod page;
mod programs;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

use crate::error::BedError;
use crate::filler::Filler;
use crate::lambda::LambdaOptions;
use crate::measure;
use crate::measure::machine::{self, Machine};
use crate::nodes::NodeOptions;
use crate::world::World;
pub use cost::Cost;
use programs::Program;

/// Pods of the node that is drained.
pub const PODS: usize = 20;
/// Pods of a node that has more than most may have.
const MANY_PODS: u32 = 300;
/// A name that no guess hits, and the last of all: the search has to look at every node.
const LAST_NAME: &str = "zz-named-by-hand";

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    filler: Filler,
    /// Where the page is kept; docs/load.md of this repository when absent.
    #[arg(long)]
    page: Option<PathBuf>,
}

/// What the same drain costs in a small cluster and in a large one.
#[derive(Debug)]
pub struct Load {
    /// All nodes of the large one.
    pub nodes: usize,
    /// How long it took to make it large.
    pub poured: Duration,
    /// In the small cluster.
    pub small: Cost,
    /// In the large one, when the first guess at the node's name is right.
    pub large: Cost,
    /// In the large one, when all guesses are wrong.
    pub searched: Cost,
}

/// Measures, prints the page and keeps it.
pub async fn run(options: Options) -> ExitCode {
    measure::page::tell(page(&options).await)
}

/// What came of a run.
#[derive(Debug)]
struct Results {
    /// Which part of the machine's time others used, before and after; empty when that is not known.
    busy: Vec<f64>,
    filler: Filler,
    load: Load,
    /// In the large cluster, a node of [`MANY_PODS`].
    many: Cost,
    /// What held the cluster.
    programs: Vec<Program>,
}

async fn page(options: &Options) -> Result<String, BedError> {
    let machine = Machine::look();
    let busy_before = machine::busy().await;
    let world = World::start().await?;
    let filler = options.filler;
    let load = measure(&world, filler).await?;
    let many_fit = NodeOptions { pods: MANY_PODS, ..NodeOptions::default() };
    let many = cost::of_drain(&world, "load-many", many_fit, MANY_PODS as usize).await?;
    let programs = programs::of(&world.dir).map_err(BedError::io("read what the programs used"))?;
    drop(world);
    let busy = [busy_before, machine::busy().await].into_iter().flatten().collect();

    let results = Results { busy, filler, load, many, programs };
    let page = page::page(&results, &machine, &LambdaOptions::default().binary);
    let path = options.page.clone().unwrap_or_else(|| crate::setup::own_file("../../docs/load.md"));
    measure::page::keep(&page, &path)?;
    Ok(page)
}

/// Drains a node of a small cluster, makes the cluster large, and drains two more.
pub async fn measure(world: &World, filler: Filler) -> Result<Load, BedError> {
    let small = cost::of_drain(world, "load-small", NodeOptions::default(), PODS).await?;
    let begin = Instant::now();
    filler.pour(&world.admin()).await?;
    let poured = begin.elapsed();
    let large = cost::of_drain(world, "load-large", NodeOptions::default(), PODS).await?;
    let named_by_hand = NodeOptions { name: Some(LAST_NAME.to_owned()), ..NodeOptions::default() };
    let searched = cost::of_drain(world, "load-searched", named_by_hand, PODS).await?;
    Ok(Load { nodes: nodes(world).await?, poured, small, large, searched })
}

async fn nodes(world: &World) -> Result<usize, BedError> {
    let nodes = Api::<Node>::all(world.admin());
    let listed = nodes.list_metadata(&ListParams::default()).await.map_err(BedError::kubernetes("list the nodes"))?;
    Ok(listed.items.len())
}
