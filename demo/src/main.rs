//! `spillway-demo`: the drain function on the test bed.
//!
//! # Layout
//! * [`demo`] drains two nodes of a small cluster and prints the changes;
//! * [`play`] keeps that cluster up;
//! * [`doctor`] prints the report of the function's self-test;
//! * [`tools`] runs `tools/spillway`, which prints documents.

mod demo;
mod doctor;
mod play;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Shows the drain function at work in a small cluster on this machine.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drains two nodes of a small cluster and prints the changes.
    Demo(demo::DemoOptions),
    /// Keeps a small cluster up until Ctrl-C.
    Play,
    /// Checks whether the next notice in a small cluster would be handled, and prints the report.
    Doctor {
        /// Also writes the report into this file, as JSON.
        #[arg(long)]
        report: Option<PathBuf>,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Demo(options) => demo::run(options).await,
        Command::Play => play::run().await,
        Command::Doctor { report } => doctor::run(report).await,
    }
}
