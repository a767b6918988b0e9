//! The demo: starts a small cluster, sends a notice, prints the changes and the receipt; twice, or once for the event of a file.
//!
//! # Layout
//! * this file: the story;
//! * `notice`: notices of AWS, and the event of a file;
//! * `live`: changes in the cluster;
//! * `receipt`: the receipt in words and as a page.

mod live;
mod notice;
mod receipt;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::WatchParams;
use serde_json::Value;
use spillway_bed::lambda::{Delivery, Lambda, LambdaOptions};
use spillway_bed::life_like::{LifeLike, life_like_cluster, until_replicas_run};
use spillway_bed::watch::{Objects, until};
use spillway_bed::{BedError, TestNode, World};
use tokio::process::Command;

use live::Live;
use notice::Notice;

/// Longest time after a drain until replacements run and the node is removed, on a busy machine.
const SETTLES_WITHIN: Duration = Duration::from_mins(2);
/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

#[derive(Debug, clap::Args)]
pub(crate) struct DemoOptions {
    /// Sends this file's event instead of the two notices.
    #[arg(long)]
    event: Option<PathBuf>,
    /// The function to run; the dev build beside this program when absent.
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub(crate) async fn run(options: DemoOptions) -> ExitCode {
    let played = tokio::select! {
        played = play(options) => played,
        // The world ends when it is dropped.
        _ = tokio::signal::ctrl_c() => return ExitCode::from(INTERRUPTED),
    };
    match played {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}", error.story());
            ExitCode::FAILURE
        }
    }
}

/// Returns `true` if all drains succeeded.
async fn play(options: DemoOptions) -> Result<bool, BedError> {
    let begin = Instant::now();
    // Options are checked before anything starts.
    let notices = match &options.event {
        Some(file) => vec![Notice::File(notice::read(file)?)],
        None => vec![Notice::Spot, Notice::Terminate],
    };
    let function = function(options.binary.as_deref())?;

    println!(
        "Spillway: what happens to an EKS node's pods when AWS takes the node away\n\
        \n  Real: the Kubernetes control plane, its checks of tokens and rights, the template's rules, the\n  \
        function. Played: the nodes (kwok), AWS (moto and stand-ins), and Lambda's Runtime API.\n"
    );
    println!("Starting the test bed and a small cluster …");
    let world = World::start().await?;
    let cluster = life_like_cluster(&world).await?;
    let stage = Stage { lambda: Lambda::start(&world, function).await?, world, cluster };
    stage.show_cluster().await?;

    for notice in notices {
        if !stage.send(notice).await? {
            stage.world.keep_logs();
            println!("\nIt did not go well.");
            return Ok(false);
        }
    }
    drop(stage);
    println!(
        "\nAll of it took {:.1} s, and is stopped and removed. What to try next:\n\
        \n  make demo EVENT=events/spot-interruption.json   sends the event of a file, yours too\
        \n  make bed                                        keeps the cluster up for you to play with\
        \n  make doctor                                     looks whether the next notice would be handled\
        \n  make test                                       runs everything, in such clusters",
        begin.elapsed().as_secs_f64()
    );
    Ok(true)
}

/// The function by its absolute path, because its process has another folder.
fn function(binary: Option<&Path>) -> Result<LambdaOptions, BedError> {
    let options = LambdaOptions::default();
    let named = binary.unwrap_or(&options.binary);
    let finding = format!("find the function at {}, which `make demo` builds", named.display());
    let binary = named.canonicalize().map_err(BedError::io(finding))?;
    Ok(LambdaOptions { binary, ..options })
}

struct Stage {
    lambda: Lambda,
    cluster: LifeLike,
    world: World,
}

impl Stage {
    async fn show_cluster(&self) -> Result<(), BedError> {
        self.kubectl(&["get", "nodes", "--label-columns=topology.kubernetes.io/zone"]).await?;
        let columns = "custom-columns=POD:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase";
        self.kubectl(&["get", "pods", "-A", "-o", columns]).await?;
        self.kubectl(&["get", "poddisruptionbudgets", "-A"]).await
    }

    /// Prints a command of kubectl and its output.
    async fn kubectl(&self, arguments: &[&str]) -> Result<(), BedError> {
        println!("\n$ kubectl {}", arguments.join(" "));
        let running = BedError::io("run kubectl");
        let kubeconfig = self.world.kubeconfig.as_os_str();
        let mut kubectl = Command::new(&self.world.kubectl);
        kubectl.args(arguments).env("KUBECONFIG", kubeconfig).status().await.map(drop).map_err(running)
    }

    /// Sends a notice, prints the changes and the receipt. Returns `true` if the drain succeeded.
    async fn send(&self, notice: Notice) -> Result<bool, BedError> {
        let [first, second, _] = &self.cluster.nodes;
        let node = if matches!(notice, Notice::Terminate) { second } else { first };
        println!("\n{}\n", notice.title(node));
        let must_drain = !matches!(notice, Notice::File(_));
        let mut live = Live::begin(&self.world).await?;
        let Some(delivered) = notice.give(&self.world.aws_side(), node).await? else {
            println!("  No rule of template.yaml lets this event through: the function is not invoked.");
            return Ok(!must_drain);
        };
        println!("  Rule {} of template.yaml delivers this event to the function:", delivered.rule);
        notice::show(&delivered.event);

        println!("\n  Seconds since the notice, whose time AWS gives in whole seconds:");
        live.count_from(notice::time(&delivered.event));
        live.print("Lambda", "invokes the function");
        let delivery = live.during(self.lambda.invoke_async(&delivered.event)).await??;
        let Some(receipt) = receipt::last_in(&delivery.last.logs) else {
            show_failure(&delivery);
            return Ok(false);
        };
        live.print("Lambda", &format!("has the answer: {}", receipt["ending"].as_str().unwrap_or_default()));
        if delivery.last.result.is_ok() {
            live.during(self.until_settled(node, &receipt)).await??;
        }
        self.print_hooks(&live, node).await?;

        receipt::show(&receipt, &delivered.rule).await?;
        if delivery.last.result.is_err() {
            show_failure(&delivery);
        }
        Ok(delivery.last.result.is_ok() && (receipt["ending"] == "drained" || !must_drain))
    }

    /// Waits until all pods run again, and until the node is removed if its hook was completed.
    async fn until_settled(&self, node: &TestNode, receipt: &Value) -> Result<(), BedError> {
        let client = self.world.admin();
        if receipt["hook"]["state"] == "completed" {
            let this = WatchParams::default().fields(&format!("metadata.name={}", node.name));
            let nodes = Api::<Node>::all(client.clone());
            until(&nodes, &this, "the node to go", SETTLES_WITHIN, |nodes: &Objects<Node>| {
                if nodes.is_empty() { Ok(()) } else { Err("it is there".to_owned()) }
            })
            .await?;
        }
        until_replicas_run(&client).await
    }

    /// Prints the results of the node's lifecycle hooks.
    async fn print_hooks(&self, live: &Live, node: &TestNode) -> Result<(), BedError> {
        let instance = self.world.aws_side().instance(&node.instance_id).await?;
        for action in instance.actions {
            let result = match (action.result, action.ended_by.as_deref()) {
                (Some(result), Some("call")) => format!("hook {} completed with {result}", action.hook),
                (Some(result), _) => format!("hook {} timed out: {result}", action.hook),
                (None, _) => format!("hook {} waits", action.hook),
            };
            live.print("Auto Scaling", &result);
            live.print("EC2", &format!("instance {} {}", node.instance_id, instance.state));
        }
        Ok(())
    }
}

fn show_failure(delivery: &Delivery) {
    let error = delivery.last.result.as_ref().err().map_or_else(String::new, ToString::to_string);
    println!("  The function failed: {error}\n  What it logged:");
    for line in delivery.failed.iter().chain([&delivery.last]).flat_map(|outcome| &outcome.logs) {
        println!("{line}");
    }
}
