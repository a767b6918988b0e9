//! `spillway-bench`: measures the drain function on the test bed, and writes a page of `docs/` and its raw results.
//!
//! # Layout
//! * [`bench`] measures one drain against a bare loop of evictions, [`peers`] sets it beside other tools, [`load`] counts
//!   what it costs in a large cluster, [`faults`] makes each fault at each of some steps, [`chaos`] many at many nodes;
//! * [`measure`] is what they share: the machine, statistics, requirements, and how a page is kept.
//!
//! What the function is measured against is built as the function is: the crate in `baseline/`.

mod bench;
mod chaos;
mod faults;
mod load;
mod measure;
mod peers;
#[cfg(test)]
mod test_support;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures the drain function, and writes a page of docs/ with its raw results beside it.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures how fast and how small the function is: docs/bench.md.
    Bench(bench::BenchOptions),
    /// Measures it beside `kubectl drain` and aws-node-termination-handler: docs/peers.md.
    Peers(peers::PeersOptions),
    /// Measures what a drain costs in a large cluster: docs/load.md.
    Load(load::LoadOptions),
    /// Makes each fault at each step of a drain: docs/faults.md.
    Faults(faults::FaultsOptions),
    /// Sends many notices while much goes wrong: docs/chaos.md.
    Chaos(chaos::ChaosOptions),
    /// Writes the pages of docs/ once more from the raw results beside them; measures nothing.
    Render,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(options) => bench::run(options).await,
        Command::Peers(options) => peers::run(options).await,
        Command::Load(options) => load::run(options).await,
        Command::Faults(options) => faults::run(options).await,
        Command::Chaos(options) => chaos::run(options).await,
        Command::Render => measure::report::render_all(),
    }
}
