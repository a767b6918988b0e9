//! A small cluster that stays up until Ctrl-C, with a notice at the press of a key.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::Value;
use spillway_bed::lambda::{Lambda, LambdaOptions, Outcome};
use spillway_bed::life_like::{LifeLike, life_like_cluster};
use spillway_bed::{BedError, World};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

use crate::doctor;

const SPOT_NOTICE: Duration = Duration::from_secs(120);

/// Starts the cluster of the demo and keeps it.
pub(crate) async fn run() -> ExitCode {
    tokio::select! {
        played = play() => match played {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", error.story());
                ExitCode::FAILURE
            }
        },
        // The world ends when it is dropped.
        _ = tokio::signal::ctrl_c() => ExitCode::SUCCESS,
    }
}

async fn play() -> Result<(), BedError> {
    let begin = Instant::now();
    println!("Starting the test bed and a small cluster …");
    let world = World::start().await?;
    let cluster = life_like_cluster(&world).await?;
    let lambda = Lambda::start(&world, LambdaOptions::default()).await?;
    println!("{}", instructions(&world, &cluster, begin.elapsed()));

    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match (line.trim(), line.trim().parse::<usize>()) {
            (_, Ok(number @ 1..=3)) => drain(&world, &cluster, &lambda, number - 1).await,
            ("d", _) => examine(&lambda).await,
            _ => println!("1, 2, 3 or d and Enter, or Ctrl-C"),
        }
    }
    // Without a keyboard the cluster stays up too.
    std::future::pending().await
}

/// Interrupts the first node, a spot instance, or terminates another by Auto Scaling.
async fn drain(world: &World, cluster: &LifeLike, lambda: &Lambda, index: usize) {
    let node = &cluster.nodes[index];
    let aws = world.aws_side();
    let delivered = match index {
        0 => aws.interrupt(&node.instance_id, SPOT_NOTICE).await,
        _ => aws.terminate(&node.instance_id).await,
    };
    match delivered {
        Ok(delivered) => {
            for notice in delivered {
                println!("rule {} lets the notice through; the function is invoked", notice.rule);
                print(&lambda.invoke(notice.event).await);
            }
        }
        Err(error) => println!("{}", error.story()),
    }
}

async fn examine(lambda: &Lambda) {
    let shown = match doctor::examine(lambda).await {
        Ok(report) => doctor::show(&report).await.map(drop),
        Err(error) => Err(error),
    };
    if let Err(error) = shown {
        println!("{}", error.story());
    }
}

/// Prints the messages of the function's log.
fn print(outcome: &Outcome) {
    for line in &outcome.logs {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.clone()));
        if let Some(message) = line.get("message").and_then(Value::as_str).or_else(|| line.as_str()) {
            println!("  {message}");
        }
    }
}

fn instructions(world: &World, cluster: &LifeLike, took: Duration) -> String {
    let [first, second, third] = &cluster.nodes;
    format!(
        "It is up ({took:.1} s). In another terminal:

{how_to_use}

Here, a number and Enter drains a node and prints the function's log. d has the doctor check whether the next notice
would be handled; break something first, such as: kubectl delete clusterrole spillway

  1  EC2 interrupts          {first}
  2  Auto Scaling terminates {second}
  3  Auto Scaling terminates {third}
  d  the doctor

Ctrl-C ends it and removes everything.",
        took = took.as_secs_f64(),
        how_to_use = world.how_to_use(),
        first = first.name,
        second = second.name,
        third = third.name,
    )
}
