//! `spillway-bed`: the supervisor of a world, and what it starts its programs with.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spillway_bed::supervisor::{self, Holder};
use spillway_bed::{WorldOptions, guard};

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
        /// Options of a program that holds the world, as JSON: it ends with stdin, and stdout has one line about it.
        #[arg(long, hide = true)]
        of_program: Option<String>,
    },
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
        Command::Up { of_program: None } => supervisor::up(WorldOptions::default(), Holder::Person).await,
        Command::Up { of_program: Some(options) } => {
            let options = serde_json::from_str(&options).expect("the library writes what it reads");
            supervisor::up(options, Holder::Program).await
        }
        Command::Guard { parent, command } => {
            eprintln!("cannot run {}: {}", command[0].display(), guard::exec(&command, parent));
            ExitCode::FAILURE
        }
    }
}
