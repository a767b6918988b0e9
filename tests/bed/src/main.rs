//! `spillway-bed`: the supervisor of a world, and what it starts its programs with.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

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
        /// As most clusters are: without `deploy/optional/flow-control.yaml`.
        #[arg(long)]
        without_flow_control: bool,
        /// A cluster of this name; once for each.
        #[arg(long = "cluster", default_values_t = WorldOptions::default().clusters)]
        clusters: Vec<String>,
        /// Nobody has enrolled the clusters, and this is the authentication mode of one; once for each.
        #[arg(long, value_parser = ["API", "API_AND_CONFIG_MAP", "CONFIG_MAP"])]
        unprepared: Vec<String>,
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
        Command::Up {
            until_stdin_closes,
            token_cache_s,
            audit_log_max_mb,
            gogc,
            controllers_nice,
            without_flow_control,
            clusters,
            unprepared,
        } => {
            let holder = if until_stdin_closes { Holder::Program } else { Holder::Person };
            let (token_cache, flow_control) = (Duration::from_secs(token_cache_s), !without_flow_control);
            let options = WorldOptions {
                token_cache,
                audit_log_max_mb,
                gogc,
                controllers_nice,
                flow_control,
                clusters,
                unprepared,
            };
            supervisor::up(options, holder).await
        }
        Command::Guard { parent, command } => {
            eprintln!("cannot run {}: {}", command[0].display(), guard::exec(&command, parent));
            ExitCode::FAILURE
        }
    }
}
