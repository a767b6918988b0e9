//! `spillway-bench peers`: Spillway beside `kubectl drain` and aws-node-termination-handler (NTH), in turn, in
//! one world for each case.
//!
//! # Layout
//! * this file: what is measured, in which order;
//! * `case`: what is drained, and by whom;
//! * `fixture`: a world, its nodes and pods, and the rights of a peer;
//! * `spillway`, `kubectl`, `nth`: one drain by each; `baseline`: the evictions alone;
//! * `figures`: what one drain came to (pure);
//! * `results`, `requirements`: what came of all, and whether it is what is required (pure);
//! * `page`: the page;
//! * [`storm`]: hundreds of nodes at once, a page of its own;
//! * [`crate::measure`] has what it shares with `bench`.

mod baseline;
mod case;
mod figures;
mod fixture;
mod kubectl;
mod nth;
mod page;
mod requirements;
mod results;
mod spillway;
pub(crate) mod storm;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;
use jiff::Timestamp;
use spillway_bed::BedError;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::lambda::LambdaOptions;

use crate::measure::circumstances::Circumstances;
use crate::measure::machine::Rests;
use crate::measure::report;
use case::{Case, Tool};
use figures::{Figures, evicted};
use fixture::{PeersFixture, Scene};
pub(crate) use results::PeersResults;
use results::{Failed, Run};

/// The round trips that are added on the way to the API server.
const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(20);
/// The API server writes a request down when it has answered it.
const WRITTEN_DOWN: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(crate) struct PeersOptions {
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
    /// The folder where the page and its raw results are kept; docs/measured/ of this repository when absent and everything is
    /// measured.
    #[arg(long)]
    keep_in: Option<PathBuf>,
}

/// Measures, prints the page and keeps it.
pub(crate) async fn run(options: PeersOptions) -> ExitCode {
    report::tell(measured(&options).await)
}

async fn measured(options: &PeersOptions) -> Result<String, BedError> {
    // Before anything of ours runs.
    let measuring = Circumstances::look(command(options), &LambdaOptions::default().binary).await;
    let (nth, unmeasured) = nth::Builds::find(options.nth_tuned.clone()).await;
    let is_wanted = |tool: &Tool| options.tools.is_empty() || options.tools.contains(tool);
    let is_here = |tool: &Tool| !tool.is_nth() || nth.of(*tool).is_some();
    let tools = Tool::value_variants().iter().copied().filter(|tool| is_wanted(tool) && is_here(tool));
    let tools: Vec<Tool> = tools.collect();
    let mut so_far = SoFar::default();
    for case in cases(options) {
        measure_case(&mut so_far, case, &tools, &nth, options).await?;
    }

    let SoFar { runs, failed, rests, kubectl } = so_far;
    let (circumstances, nth) = (measuring.over().await, nth::release().to_owned());
    let results = PeersResults { circumstances, rests, runs, failed, kubectl, nth, unmeasured };
    report::keep(&results, kept_in(options).as_deref())
}

/// The command of the whole; whoever measures the tuned NTH names a folder of their own there. A part is no page for the
/// documents, and its arguments say which.
fn command(options: &PeersOptions) -> String {
    if is_part(options) {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        return format!("spillway-bench {}", arguments.join(" "));
    }
    let tuned = if options.nth_tuned.is_some() { " NTH_TUNED=…" } else { "" };
    format!("make peers RUNS={}{tuned}", options.runs)
}

fn is_part(options: &PeersOptions) -> bool {
    options.quick || !options.cases.is_empty() || !options.tools.is_empty()
}

/// What has been measured so far.
#[derive(Debug, Default)]
struct SoFar {
    runs: Vec<Run>,
    failed: Vec<Failed>,
    rests: Rests,
    /// Its version.
    kubectl: String,
}

/// In a world of its own, so that no case finds an API server that holds what the cases before it left behind.
async fn measure_case(
    so_far: &mut SoFar,
    case: Case,
    tools: &[Tool],
    nth: &nth::Builds,
    options: &PeersOptions,
) -> Result<(), BedError> {
    say(&format!("starting a world for {}", case.in_words()));
    let mut fixture = PeersFixture::start(case).await?;
    so_far.kubectl = kubectl::version(&fixture.world.kubectl).await?;
    for tool in in_turn(tools, Case::SmallNode, NEAR, 0, options) {
        say(&format!("once, not counted: {}", tool.in_words()));
        // Whoever cannot do it will show it when it counts.
        let _ = drain(&mut fixture, nth, Case::SmallNode, NEAR, tool).await;
        fixture.clear().await?;
    }
    for (distance, round) in rounds(case, options) {
        for tool in in_turn(tools, case, distance, round, options) {
            let far = how_far(distance);
            say(&format!("{}, {far}, run {}, {}", case.in_words(), round + 1, tool.in_words()));
            match drain(&mut fixture, nth, case, distance, tool).await {
                Ok(figures) => so_far.runs.push(Run { case, distance, round, tool, figures }),
                // Whoever did not come to an end has a place on the page, and the others their turn.
                Err(error) => {
                    fixture.world.keep_logs();
                    say(&error.story());
                    let why = error.story().lines().next().unwrap_or_default().to_owned();
                    so_far.failed.push(Failed { case, distance, round, tool, why });
                }
            }
            fixture.clear().await?;
        }
    }
    so_far.rests.add(fixture.rests);
    Ok(())
}

fn cases(options: &PeersOptions) -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| match (options.cases.is_empty(), options.quick) {
        (false, _) => options.cases.contains(case),
        (true, quick) => !(quick && case.nodes() == 50),
    };
    Case::value_variants().iter().copied().filter(is_wanted)
}

/// Every distance, as often as the tool that drains the case most often.
fn rounds(case: Case, options: &PeersOptions) -> Vec<(Duration, usize)> {
    let most = |distance: Duration| {
        let runs = Tool::value_variants().iter().map(|tool| case.runs(of_the_smallest(options), *tool, distance));
        runs.max().unwrap_or_default()
    };
    let distances = case.distances().iter().filter(|distance| !options.quick || **distance == FAR);
    distances.flat_map(|distance| (0..most(*distance)).map(|round| (*distance, round))).collect()
}

fn of_the_smallest(options: &PeersOptions) -> usize {
    if options.quick { 1 } else { options.runs.get() }
}

/// Who drains in a round. Who comes first changes, so that nobody always finds the machine as the same other has left it.
fn in_turn(tools: &[Tool], case: Case, distance: Duration, round: usize, options: &PeersOptions) -> Vec<Tool> {
    let drains = |tool: &Tool| tool.takes(case) && round < case.runs(of_the_smallest(options), *tool, distance);
    let mut tools: Vec<Tool> = tools.iter().copied().filter(drains).collect();
    let all = tools.len();
    tools.rotate_left(round % all.max(1));
    tools
}

/// A part of the measurements is kept only where somebody says so.
fn kept_in(options: &PeersOptions) -> Option<PathBuf> {
    options.keep_in.clone().or_else(|| (!is_part(options)).then(report::documents))
}

async fn drain(
    fixture: &mut PeersFixture,
    nth: &nth::Builds,
    case: Case,
    distance: Duration,
    tool: Tool,
) -> Result<Figures, BedError> {
    let scene = fixture.scene(case).await?;
    fixture.proxy.set_round_trip(distance);
    let drained = match tool {
        Tool::Spillway => spillway::drain(fixture, &scene).await?,
        Tool::Kubectl => kubectl::drain(fixture, &scene).await?,
        Tool::Nth | Tool::NthWorkers | Tool::NthTuned => nth::drain(fixture, &scene, nth, tool).await?,
        Tool::Baseline => baseline::drain(fixture, &scene).await?,
    };
    Ok(Figures::of(&drained, scene.nodes.len(), scene.pods))
}

/// What a tool has asked since, once all its evictions are written down.
async fn until_evicted(mut audit: AuditLog, begin: Timestamp, scene: &Scene) -> Result<Vec<Request>, BedError> {
    let all = |requests: &[Request]| evicted(requests) >= scene.pods;
    let mut requests = match audit.wait_until("all evictions in the audit log", WRITTEN_DOWN, all).await {
        Err(_) if scene.may_be_left => audit.requests()?,
        requests => requests?,
    };
    requests.retain(|request| request.received >= begin);
    Ok(requests)
}

fn how_far(distance: Duration) -> String {
    if distance.is_zero() { "no delay".to_owned() } else { format!("+{} ms", distance.as_millis()) }
}

fn say(what: &str) {
    eprintln!("peers: {what}");
}
