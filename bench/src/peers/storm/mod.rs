//! `spillway-bench storm`: hundreds of spot notices at once, where EC2, EKS and Lambda limit calls as they do in an account.
//!
//! # Layout
//! * this file: what is measured, in which order; `spillway` is one storm of the function's, and the other tools drain as they
//!   do beside it in [`peers`](super);
//! * `results`: what came of all (pure);
//! * `page`: the page.

mod page;
mod results;
mod spillway;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::BedError;
use spillway_bed::aws::Call;
use spillway_bed::lambda::LambdaOptions;

use super::case::Tool;
use super::figures::{Drained, Figures};
use super::fixture::{PeersFixture, Scene};
use super::{FAR, baseline, nth};
use crate::measure;
use crate::measure::circumstances::Circumstances;
use crate::measure::report;
pub(crate) use results::StormResults;
use results::{Bucket, Calls, Failed, Limits, Run, Size};

/// How long a tool may take for one storm; what it has done by then is what came.
const LIMIT: Duration = Duration::from_mins(10);
const LIMIT_OF_NTH: Duration = Duration::from_mins(30);

#[derive(Debug, clap::Args)]
pub(crate) struct StormOptions {
    /// Nodes and the pods on each, the smallest storm first.
    #[arg(long, value_delimiter = ',', default_value = "150x2,150x15,375x2,375x15,750x2,750x15,500x20")]
    sizes: Vec<Size>,
    /// How many executions Lambda allows at a time: the first in each storm, the others in the first storm alone.
    #[arg(long, value_delimiter = ',', default_value = "1000,50,10")]
    limits: Vec<usize>,
    /// How many `DescribeInstances` EC2 allows Spillway at once, and how many more each second. 50+10 is what EC2 may count
    /// calls without pages against. The first in each storm, the others in the first storm alone.
    #[arg(long, value_delimiter = ',', default_value = "100+20,50+10")]
    ec2: Vec<Bucket>,
    /// Who drains, in this order. A tool that fails in one storm has no turn in those that follow.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "nth,nth-tuned,spillway,baseline")]
    tools: Vec<Tool>,
    /// In which of the storms NTH drains too: as installed it takes 20 minutes for 750 nodes of two pods.
    #[arg(long, value_delimiter = ',', default_value = "150x2,750x2")]
    nth_sizes: Vec<Size>,
    /// A build of NTH that knows `KUBE_API_QPS`, which the release does not.
    #[arg(long)]
    nth_tuned: Option<PathBuf>,
    /// The folder where the page and its raw results are kept; docs/measured/ of this repository when absent.
    #[arg(long)]
    keep_in: Option<PathBuf>,
}

/// Measures, prints the page and keeps it.
pub(crate) async fn run(options: StormOptions) -> ExitCode {
    report::tell(measured(&options).await)
}

async fn measured(options: &StormOptions) -> Result<String, BedError> {
    // Before anything of ours runs.
    let measuring = Circumstances::look(command(options), &LambdaOptions::default().binary).await;
    let (builds, unmeasured) = nth::Builds::find(options.nth_tuned.clone()).await;
    let is_here = |tool: &Tool| !tool.is_nth() || builds.of(*tool).is_some();
    let (mut runs, mut failed) = (Vec::new(), Vec::<Failed>::new());
    for (number, size) in options.sizes.iter().enumerate() {
        say(&format!("starting a world for {size}"));
        let mut fixture = PeersFixture::start_with(measure::world_options()).await?;
        fixture.proxy.set_round_trip(FAR);
        for tool in options.tools.iter().copied().filter(is_here) {
            let is_left_out = tool.is_nth() && !options.nth_sizes.contains(size);
            if failed.iter().any(|failed| failed.tool == tool) || is_left_out {
                continue;
            }
            for limits in limits(options, tool, number == 0) {
                say(&format!("{size}, {}", page::in_words(tool, limits)));
                let limit = if tool.is_nth() { LIMIT_OF_NTH } else { LIMIT };
                let scene = fixture.storm(size.nodes, size.pods, limit).await?;
                match storm(&fixture, &scene, &builds, (tool, limits), *size).await {
                    Ok(run) => {
                        say(&page::in_a_line(&run));
                        runs.push(run);
                    }
                    Err(error) => {
                        fixture.world.keep_logs();
                        say(&error.story());
                        let why = error.story().lines().next().unwrap_or_default().to_owned();
                        failed.push(Failed { size: *size, tool, limits, why });
                    }
                }
                fixture.clear().await?;
            }
        }
    }
    let nth = nth::release().to_owned();
    let results = StormResults { circumstances: measuring.over().await, runs, failed, nth, unmeasured };
    report::keep(&results, Some(&options.keep_in.clone().unwrap_or_else(report::documents)))
}

/// The turns of a tool in a storm, by what AWS allows the function. The first storm has a turn for each limit. The other tools
/// are no functions: they have one turn, without a limit.
fn limits(options: &StormOptions, tool: Tool, is_first: bool) -> Vec<Option<Limits>> {
    if tool != Tool::Spillway {
        return vec![None];
    }
    let ([executions, fewer @ ..], [ec2, slower @ ..]) = (options.limits.as_slice(), options.ec2.as_slice()) else {
        return Vec::new();
    };
    let usual = Limits { executions: *executions, ec2: *ec2 };
    let mut limits = vec![usual];
    if is_first {
        limits.extend(fewer.iter().map(|executions| Limits { executions: *executions, ..usual }));
        limits.extend(slower.iter().map(|ec2| Limits { ec2: *ec2, ..usual }));
    }
    limits.into_iter().map(Some).collect()
}

async fn storm(
    fixture: &PeersFixture,
    scene: &Scene,
    builds: &nth::Builds,
    (tool, limits): (Tool, Option<Limits>),
    size: Size,
) -> Result<Run, BedError> {
    let (drained, failed) = match (tool, limits) {
        (_, Some(limits)) => spillway::drain(fixture, scene, limits).await?,
        (Tool::Nth | Tool::NthWorkers | Tool::NthTuned, None) => (nth::drain(fixture, scene, builds, tool).await?, 0),
        (Tool::Baseline, None) => (baseline::drain(fixture, scene).await?, 0),
        (Tool::Kubectl | Tool::Spillway, None) => {
            let (wanted, seen) = ("a tool that notices drain by".to_owned(), "kubectl".to_owned());
            return Err(BedError::NotMeasured { wanted, seen });
        }
    };
    let calls = fixture.world.aws_side().calls(None).await?;
    Ok(Run {
        size,
        tool,
        limits,
        figures: Figures::of(&drained, scene.nodes.len(), scene.pods),
        ec2: of_action(&calls, "DescribeInstances", drained.begin),
        eks: of_action(&calls, "DescribeCluster", drained.begin),
        throttled_by_api_server: throttled(&drained),
        failed,
    })
}

/// The calls of whoever drained: nobody else made any meanwhile.
#[expect(clippy::cast_precision_loss, reason = "a second has digits enough")]
fn of_action(calls: &[Call], action: &str, began: Timestamp) -> Calls {
    let began = began.as_microsecond() as f64 / 1e6;
    let made = || calls.iter().filter(|call| call.action == action && call.at >= began);
    Calls { made: made().count(), throttled: made().filter(|call| matches!(call.status, 429 | 503)).count() }
}

fn throttled(drained: &Drained) -> usize {
    drained.requests.iter().filter(|request| request.code == Some(429)).count()
}

fn command(options: &StormOptions) -> String {
    let list = |items: Vec<String>| items.join(",");
    let ec2 = list(options.ec2.iter().map(Bucket::to_string).collect());
    let sizes = |of: &[Size]| list(of.iter().map(Size::to_string).collect());
    let (sizes, nth_sizes) = (sizes(&options.sizes), sizes(&options.nth_sizes));
    let limits = list(options.limits.iter().map(usize::to_string).collect());
    let tools = list(options.tools.iter().map(|tool| tool.in_option()).collect());
    let tuned = if options.nth_tuned.is_some() { " NTH_TUNED=…" } else { "" };
    format!("make storm SIZES={sizes} NTH_SIZES={nth_sizes} LIMITS={limits} EC2={ec2} TOOLS={tools}{tuned}")
}

fn say(what: &str) {
    eprintln!("storm: {what}");
}
