//! `spillway-bed`: the supervisor of a world, and what it starts its programs with.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use spillway_bed::demo::{self, DemoOptions};
use spillway_bed::supervisor::{self, Holder};
use spillway_bed::{WorldOptions, bench, doctor, faults, guard, load, peers, play};

/// A real control plane and an AWS side on this machine, for a person or a test.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts a world and keeps it until Ctrl-C.
    Up {
        /// Ends with stdin, and says in one JSON line on stdout where everything is.
        #[arg(long)]
        until_stdin_closes: bool,
        /// How long the API server believes a token it has checked.
        #[arg(long, default_value_t = 0)]
        token_cache_s: u64,
        /// Where an API server's audit log is rotated.
        #[arg(long, default_value_t = WorldOptions::default().audit_log_max_mb)]
        audit_log_max_mb: u32,
        /// How much garbage an API server lets gather, in per cent of what it keeps.
        #[arg(long, default_value_t = WorldOptions::default().gogc)]
        gogc: u32,
        /// How far the controllers and kwok stand back behind an API server and its etcd, as `nice` has it.
        #[arg(long, default_value_t = WorldOptions::default().controllers_nice)]
        controllers_nice: u8,
        /// A cluster of this name; once for each.
        #[arg(long = "cluster", default_values_t = WorldOptions::default().clusters)]
        clusters: Vec<String>,
    },
    /// Keeps a small cluster up for a person to play with, until Ctrl-C.
    Play,
    /// Drains two nodes of a small cluster and tells it as it happens.
    Demo {
        /// Sends this file's event instead of the two notices.
        #[arg(long)]
        event: Option<PathBuf>,
        /// The function to run; the dev build beside this program when absent.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Has the function look whether the next notice in a small cluster would be handled, and prints what it found.
    Doctor {
        /// Writes the report into this file too, as JSON.
        #[arg(long)]
        report: Option<PathBuf>,
    },
    /// Measures how fast and how small the function is, and writes docs/bench.md.
    Bench(bench::Options),
    /// Measures it beside `kubectl drain`, and writes docs/peers.md.
    Peers(peers::Options),
    /// Measures what a drain costs in a large cluster, and writes docs/load.md.
    Load(load::Options),
    /// Makes every fault at every step of a drain, and writes docs/faults.md.
    Faults(faults::Options),
    /// Becomes a command that dies with its parent.
    #[command(hide = true)]
    Guard {
        #[arg(long)]
        parent: Option<i32>,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Up { until_stdin_closes, token_cache_s, audit_log_max_mb, gogc, controllers_nice, clusters } => {
            let holder = if until_stdin_closes { Holder::Program } else { Holder::Person };
            let token_cache = Duration::from_secs(token_cache_s);
            let options = WorldOptions { token_cache, audit_log_max_mb, gogc, controllers_nice, clusters };
            supervisor::up(options, holder).await
        }
        Command::Play => play::run().await,
        Command::Demo { event, binary } => demo::run(DemoOptions { event, binary }).await,
        Command::Doctor { report } => doctor::run(report).await,
        Command::Bench(options) => bench::run(options).await,
        Command::Peers(options) => peers::run(options).await,
        Command::Load(options) => load::run(options).await,
        Command::Faults(options) => faults::run(options).await,
        Command::Guard { parent, command } => {
            eprintln!("cannot run {}: {}", command[0].display(), guard::exec(&command, parent));
            ExitCode::FAILURE
        }
    }
}
