//! `spillway-bed peers`: Spillway beside `kubectl drain` and aws-node-termination-handler (NTH), in turn, in
//! one world for each case.
//!
//! # Layout
//! * this file: what is measured, in which order;
//! * `case`: what is drained, and by whom;
//! * `field`: a world, its nodes and pods, and the rights of a peer;
//! * `spillway`, `kubectl`, `nth`: one drain by each; `floor`: the evictions alone;
//! * `figures`: what one drain came to (pure);
//! * `results`, `goals`: what came of all, and whether it is what was wanted (pure);
//! * `page`: the page that is printed and kept;
//! * [`crate::measure`] has what it shares with `bench`.

mod case;
mod field;
mod figures;
mod floor;
mod goals;
mod kubectl;
mod nth;
mod page;
mod results;
mod spillway;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;
use jiff::Timestamp;

use crate::audit::{AuditLog, Request};
use crate::error::BedError;
use crate::lambda::LambdaOptions;
use crate::measure;
use crate::measure::machine::{self, Machine};
use case::{Case, Tool};
use field::{Field, Scene};
use figures::{Figures, evicted};
use results::{Results, Run};

/// The round trips that are added on the way to the API server.
const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(20);
/// The API server writes a request down when it has answered it.
const WRITTEN_DOWN: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often everybody drains the smallest case; see `Case::runs` for the others.
    #[arg(long, default_value = "2")]
    runs: NonZeroUsize,
    /// Each case as seldom as can be, far away, without the one that takes the peers minutes: a look, no result.
    #[arg(long)]
    quick: bool,
    /// Only this case; may be given more than once.
    #[arg(long = "case", value_enum)]
    cases: Vec<Case>,
    /// Only this tool; may be given more than once.
    #[arg(long = "tool", value_enum)]
    tools: Vec<Tool>,
    /// A build of NTH that knows `KUBE_API_QPS`, which the release does not.
    #[arg(long)]
    nth_tuned: Option<PathBuf>,
    /// Where the page is kept; docs/peers.md of this repository when absent and everything is measured.
    #[arg(long)]
    page: Option<PathBuf>,
}

/// Measures, prints the page and keeps it.
pub async fn run(options: Options) -> ExitCode {
    measure::page::tell(page(&options).await)
}

async fn page(options: &Options) -> Result<String, BedError> {
    let machine = Machine::look();
    // Before anything of ours runs.
    let busy_before = machine::busy().await;
    let (nth, unmeasured) = nth::Builds::find(options.nth_tuned.clone()).await;
    let is_wanted = |tool: &Tool| options.tools.is_empty() || options.tools.contains(tool);
    let is_here = |tool: &Tool| !tool.is_nth() || nth.of(*tool).is_some();
    let tools = Tool::value_variants().iter().copied().filter(|tool| is_wanted(tool) && is_here(tool));
    let tools: Vec<Tool> = tools.collect();
    let mut results = Results { unmeasured, ..Results::default() };
    for case in cases(options) {
        measure_case(&mut results, case, &tools, &nth, options).await?;
    }
    results.busy = [busy_before, machine::busy().await].into_iter().flatten().collect();

    let page = page::page(&results, &machine, &LambdaOptions::default().binary);
    if let Some(path) = kept_in(options) {
        measure::page::keep(&page, &path)?;
    }
    Ok(page)
}

/// In a world of its own, so that no case finds an API server that holds what the cases before it left behind.
async fn measure_case(
    results: &mut Results,
    case: Case,
    tools: &[Tool],
    nth: &nth::Builds,
    options: &Options,
) -> Result<(), BedError> {
    say(&format!("starting a world for {}", case.in_words()));
    let mut field = Field::set().await?;
    results.kubectl = kubectl::version(&field.world.kubectl).await?;
    for tool in in_turn(tools, Case::SmallNode, NEAR, 0, options) {
        say(&format!("once, not counted: {}", tool.in_words()));
        // Whoever cannot do it will show it when it counts.
        let _ = drain(&mut field, nth, Case::SmallNode, NEAR, tool).await;
        field.clear().await?;
    }
    for (distance, round) in rounds(case, options) {
        for tool in in_turn(tools, case, distance, round, options) {
            let what = format!("{}, {}, run {}, {}", case.in_words(), how_far(distance), round + 1, tool.in_words());
            say(&what);
            match drain(&mut field, nth, case, distance, tool).await {
                Ok(figures) => results.runs.push(Run { case, distance, round, tool, figures }),
                // Whoever did not come to an end has a place on the page, and the others their turn.
                Err(error) => {
                    field.world.keep_logs();
                    say(&error.story());
                    results.unmeasured.push(format!("{what}: {}", error.story().lines().next().unwrap_or_default()));
                }
            }
            field.clear().await?;
        }
    }
    results.rests.add(field.rests);
    Ok(())
}

fn cases(options: &Options) -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| match (options.cases.is_empty(), options.quick) {
        (false, _) => options.cases.contains(case),
        (true, quick) => !(quick && case.nodes() == 50),
    };
    Case::value_variants().iter().copied().filter(is_wanted)
}

/// Every distance, as often as the tool that drains the case most often.
fn rounds(case: Case, options: &Options) -> Vec<(Duration, usize)> {
    let most = |distance: Duration| {
        let runs = Tool::value_variants().iter().map(|tool| case.runs(of_the_smallest(options), *tool, distance));
        runs.max().unwrap_or_default()
    };
    let distances = case.distances().iter().filter(|distance| !options.quick || **distance == FAR);
    distances.flat_map(|distance| (0..most(*distance)).map(|round| (*distance, round))).collect()
}

fn of_the_smallest(options: &Options) -> usize {
    if options.quick { 1 } else { options.runs.get() }
}

/// Who drains in a round. Who comes first changes, so that nobody always finds the machine as the same other has left it.
fn in_turn(tools: &[Tool], case: Case, distance: Duration, round: usize, options: &Options) -> Vec<Tool> {
    let drains = |tool: &Tool| tool.takes(case) && round < case.runs(of_the_smallest(options), *tool, distance);
    let mut tools: Vec<Tool> = tools.iter().copied().filter(drains).collect();
    let all = tools.len();
    tools.rotate_left(round % all.max(1));
    tools
}

/// A part of the measurements is no page for the documents.
fn kept_in(options: &Options) -> Option<PathBuf> {
    let everything = options.cases.is_empty() && options.tools.is_empty() && !options.quick;
    options.page.clone().or_else(|| everything.then(|| crate::setup::own_file("../../docs/peers.md")))
}

async fn drain(
    field: &mut Field,
    nth: &nth::Builds,
    case: Case,
    distance: Duration,
    tool: Tool,
) -> Result<Figures, BedError> {
    let scene = field.scene(case).await?;
    field.proxy.set_round_trip(distance);
    let drained = match tool {
        Tool::Spillway => spillway::drain(field, &scene).await?,
        Tool::Kubectl => kubectl::drain(field, &scene).await?,
        Tool::Nth | Tool::NthWorkers | Tool::NthTuned => nth::drain(field, &scene, nth, tool).await?,
        Tool::Floor => floor::drain(field, &scene).await?,
    };
    Ok(Figures::of(&drained, scene.nodes.len(), scene.pods))
}

/// What a tool has asked since, once all its evictions are written down.
async fn until_evicted(mut audit: AuditLog, begin: Timestamp, scene: &Scene) -> Result<Vec<Request>, BedError> {
    let all = |requests: &[Request]| evicted(requests) >= scene.pods;
    let mut requests = audit.wait_until("all evictions in the audit log", WRITTEN_DOWN, all).await?;
    requests.retain(|request| request.received >= begin);
    Ok(requests)
}

fn how_far(distance: Duration) -> String {
    if distance.is_zero() { "no delay".to_owned() } else { format!("+{} ms", distance.as_millis()) }
}

fn say(what: &str) {
    eprintln!("peers: {what}");
}
