//! `spillway-bench`: measures the drain function on the test bed, and writes docs/contributing/measured/bench.md.
//!
//! # Layout
//! * this file: order of the measurements; [`case`]: cases and tools;
//! * [`fixture`]: a world with nodes and pods, and the observation of a drain; [`function`], [`nth`], [`baseline`]: a drain by
//!   each tool; [`starts`]: size, start and first cordon of a build; [`replacement`]: a spot node that is
//!   replaced first;
//! * [`figures`], [`results`], [`requirements`], [`page`]: figures of a drain, of all drains, and the page (pure);
//!   [`statistics`], [`machine`], [`circumstances`]: helpers.
//!
//! The crate in `baseline/` has the programs for comparison, built as the function is.

mod baseline;
mod case;
mod circumstances;
mod figures;
mod fixture;
mod function;
mod machine;
mod nth;
mod page;
mod replacement;
mod requirements;
mod results;
mod starts;
mod statistics;
#[cfg(test)]
mod test_support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spillway_bed::BedError;
use spillway_bed::lambda::LambdaOptions;

use case::{Case, DEFAULT, Tool};
use circumstances::Measuring;
use figures::Figures;
use fixture::{Fixture, Scene};
use function::Function;
use machine::Rests;
use replacement::Replacement;
use results::{Failed, Results, Run};
use starts::{Claims, Size, Starts};

/// Starts take milliseconds, so there are many.
const STARTS_A_RUN: usize = 10;
/// Drained once by each tool in each world, not counted.
const WARM_UP: Case = Case::new(1, 1);

#[derive(Debug, Parser)]
#[command(version, about = "Measures the drain function, and writes docs/contributing/measured/bench.md.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures; writes the page and its raw results if all default cases are among the cases.
    Run(Options),
    /// Writes the page from its raw results.
    Render,
}

#[derive(Debug, clap::Args)]
struct Options {
    /// Nodes and the pods of each.
    #[arg(long, value_delimiter = ',', default_values_t = DEFAULT)]
    cases: Vec<Case>,
    /// Rounds of the node of 110 pods; the other cases have half, above 150 nodes a twelfth.
    #[arg(long, default_value_t = 12)]
    runs: usize,
    /// Executions that Lambda allows the function at a time.
    #[arg(long, default_value_t = 1_000)]
    executions: usize,
    /// A drain function's `bootstrap`, of another commit, measured in turn with the new one.
    #[arg(long)]
    before: Option<PathBuf>,
    /// A build of aws-node-termination-handler.
    #[arg(long)]
    nth: Option<PathBuf>,
}

/// Programs under measurement.
#[derive(Debug)]
struct Programs {
    drain: PathBuf,
    before: Option<PathBuf>,
    nth: Option<PathBuf>,
    /// A function that is `lambda_runtime` alone.
    empty: PathBuf,
    baseline: PathBuf,
}

impl Programs {
    fn find(options: &Options) -> Result<Self, BedError> {
        let own = std::env::current_exe().map_err(BedError::io("find this program's own path"))?;
        let target = own.ancestors().nth(2).unwrap_or(&own);
        let built = |name: &str| exists(target.join("lambda").join(name).join("bootstrap"));
        Ok(Self {
            drain: exists(&LambdaOptions::default().binary)?,
            before: options.before.as_ref().map(exists).transpose()?,
            nth: options.nth.as_ref().map(exists).transpose()?,
            empty: built("spillway-empty")?,
            baseline: built("spillway-baseline")?,
        })
    }

    fn of(&self, tool: Tool) -> Option<&Path> {
        match tool {
            Tool::Spillway => Some(&self.drain),
            Tool::Before => self.before.as_deref(),
            Tool::Nth => self.nth.as_deref(),
            Tool::Baseline => Some(&self.baseline),
        }
    }

    fn tools(&self) -> Vec<Tool> {
        Tool::ALL.into_iter().filter(|tool| self.of(*tool).is_some()).collect()
    }

    fn functions(&self) -> impl Iterator<Item = (Tool, &Path)> {
        [Tool::Spillway, Tool::Before].into_iter().filter_map(|tool| Some((tool, self.of(tool)?)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let page = match Arguments::parse().command {
        Command::Run(options) => run(&options).await,
        Command::Render => results::read(&results::kept("json")).and_then(|results| keep(&results)),
    };
    match page {
        Ok(page) => {
            println!("{page}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot measure: {}", error.story());
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<String, BedError> {
    let programs = Programs::find(options)?;
    let measuring = Measuring::begin(command(options), &programs.drain).await;
    let sizes = programs.functions().map(|(tool, program)| Size::of(tool, program)).collect::<Result<_, _>>()?;
    log("starts");
    let starts = Starts::of(&programs, options.runs * STARTS_A_RUN).await?;
    let mut measured = Measured::default();
    measured.claims(&programs, options.runs).await?;
    for case in &options.cases {
        for case in [Some(*case), case.tenth()].into_iter().flatten() {
            measured.case(case, &programs, options).await?;
        }
    }
    log("replacement first");
    let replacement = Some(Replacement::of(&programs.drain).await?);
    let Measured { runs, failed, claims, rests } = measured;
    let nth = match &programs.nth {
        Some(program) => Some(nth::version(program).await),
        None => None,
    };
    let beside = results::read(&results::kept("json")).map(|kept| kept.beside).unwrap_or_default();
    let circumstances = measuring.end().await;
    let mut results = Results { circumstances, rests, sizes, starts, claims, runs, failed, nth, beside, replacement };
    results.compare_with_nth();
    if DEFAULT.iter().all(|case| options.cases.contains(case)) { keep(&results) } else { Ok(page::page(&results)) }
}

/// Results so far.
#[derive(Debug, Default)]
struct Measured {
    runs: Vec<Run>,
    failed: Vec<Failed>,
    claims: Vec<Claims>,
    rests: Rests,
}

impl Measured {
    /// Measures the way to the cordon of an empty node.
    async fn claims(&mut self, programs: &Programs, rounds: usize) -> Result<(), BedError> {
        log("starting a world for empty nodes");
        let mut fixture = Fixture::start().await?;
        for round in 0..rounds {
            for (tool, program) in programs.functions() {
                log(&format!("empty nodes, round {} of {rounds}, {}", round + 1, tool.in_words()));
                self.claims.push(Claims::of(&mut fixture, (tool, program), round).await?);
            }
        }
        self.rests.add(fixture.rests);
        Ok(())
    }

    /// Measures a case in a new world. Tools take turns, and each round begins with another tool.
    async fn case(&mut self, case: Case, programs: &Programs, options: &Options) -> Result<(), BedError> {
        log(&format!("starting a world for {}", case.in_words()));
        let mut fixture = Fixture::start().await?;
        let mut tools = if case.part == 1 { programs.tools() } else { vec![Tool::Spillway] };
        for tool in &tools {
            let scene = fixture.scene(WARM_UP).await?;
            // A tool that cannot drain shows it in the first round.
            let _ = drain(&fixture, &scene, *tool, programs, options.executions).await;
            fixture.clear().await?;
        }
        let rounds = case.rounds(options.runs);
        for round in 0..rounds {
            for tool in tools.clone() {
                log(&format!("{}, round {} of {rounds}, {}", case.in_words(), round + 1, tool.in_words()));
                let scene = fixture.scene(case).await?;
                match drain(&fixture, &scene, tool, programs, options.executions).await {
                    Ok(figures) => self.runs.push(Run { case, tool, round, figures }),
                    Err(error) => {
                        fixture.world.keep_logs();
                        log(&error.story());
                        let why = error.story().lines().next().unwrap_or_default().to_owned();
                        self.failed.push(Failed { case, tool, round, why });
                    }
                }
                fixture.clear().await?;
            }
            tools.rotate_left(1);
        }
        self.rests.add(fixture.rests);
        Ok(())
    }
}

async fn drain(
    fixture: &Fixture,
    scene: &Scene,
    tool: Tool,
    programs: &Programs,
    executions: usize,
) -> Result<Figures, BedError> {
    let program = programs.of(tool).expect("only tools with a program take turns");
    match tool {
        Tool::Spillway | Tool::Before => {
            Function::deploy(fixture, program, &scene.name, executions).await?.drain(fixture, scene).await
        }
        Tool::Nth => nth::drain(fixture, scene, program).await,
        Tool::Baseline => baseline::drain(fixture, scene, program).await,
    }
}

/// Writes the page and its raw results. The page is rendered from what was written.
fn keep(results: &Results) -> Result<String, BedError> {
    let writing = || BedError::io("write docs/contributing/measured/bench");
    let raw = results::raw(results).map_err(std::io::Error::other).map_err(writing())?;
    std::fs::write(results::kept("json"), raw).map_err(writing())?;
    let page = page::page(&results::read(&results::kept("json"))?);
    std::fs::write(results::kept("md"), &page).map_err(writing())?;
    Ok(page)
}

/// Command that repeats the measurement. Paths of this machine are left out.
fn command(options: &Options) -> String {
    let Options { cases, runs, executions, before, nth } = options;
    let mut command = format!("make bench RUNS={runs}");
    if cases != &DEFAULT {
        let cases: Vec<_> = cases.iter().map(Case::to_string).collect();
        command = format!("{command} CASES={}", cases.join(","));
    }
    if *executions != 1_000 {
        command = format!("{command} EXECUTIONS={executions}");
    }
    for (name, path) in [("BEFORE", before), ("NTH", nth)] {
        if path.is_some() {
            command = format!("{command} {name}=…");
        }
    }
    command
}

/// Absolute path of a program.
fn exists(program: impl AsRef<Path>) -> Result<PathBuf, BedError> {
    let program = program.as_ref();
    program.canonicalize().map_err(BedError::io(format!("find {}", program.display())))
}

fn log(message: &str) {
    eprintln!("bench: {message}");
}
