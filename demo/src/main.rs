//! `spillway-demo`: the drain function on the test bed, for a person to see.
//!
//! # Layout
//! * [`demo`] drains two nodes of a small cluster and tells it as it happens;
//! * [`play`] keeps that cluster up to play with;
//! * [`doctor`] shows what the function's self-test finds in it;
//! * [`tools`] runs the programs of `tools/`, which print documents.

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
    /// Drains two nodes of a small cluster and tells it as it happens.
    Demo(demo::DemoOptions),
    /// Keeps a small cluster up for a person to play with, until Ctrl-C.
    Play,
    /// Has the function look whether the next notice in a small cluster would be handled, and prints what it found.
    Doctor {
        /// Writes the report into this file too, as JSON.
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
