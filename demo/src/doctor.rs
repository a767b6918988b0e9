//! The doctor in a small cluster: one report, printed by `tools/spillway doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use spillway_bed::lambda::{Lambda, LambdaOptions};
use spillway_bed::life_like::life_like_cluster;
use spillway_bed::setup::project_file;
use spillway_bed::{BedError, World};

use crate::tools;

/// Starts the cluster of the demo and prints the doctor's report, optionally also into a file.
pub(crate) async fn run(report: Option<PathBuf>) -> ExitCode {
    tokio::select! {
        examined = examine_once(report) => examined.unwrap_or_else(|error| {
            eprintln!("{}", error.story());
            ExitCode::FAILURE
        }),
        // The world ends when it is dropped.
        _ = tokio::signal::ctrl_c() => ExitCode::FAILURE,
    }
}

async fn examine_once(report: Option<PathBuf>) -> Result<ExitCode, BedError> {
    println!("Starting the test bed and a small cluster …");
    let world = World::start().await?;
    life_like_cluster(&world).await?;
    let lambda = Lambda::start(&world, LambdaOptions::default()).await?;
    let found = examine(&lambda).await?;
    if let Some(file) = &report {
        std::fs::write(file, format!("{found:#}\n")).map_err(BedError::io("write the report"))?;
    }
    println!();
    show(&found).await
}

/// Invokes the function with the sample of `events/`. Returns the report.
pub(crate) async fn examine(lambda: &Lambda) -> Result<Value, BedError> {
    let examining = || BedError::io("run the doctor");
    let sample = std::fs::read_to_string(project_file("events/doctor.json")?).map_err(examining())?;
    let sample: Value = serde_json::from_str(&sample).map_err(std::io::Error::other).map_err(examining())?;
    let outcome = lambda.invoke(&sample).await;
    outcome.result.map_err(|error| examining()(std::io::Error::other(error.to_string())))
}

/// Prints a report. The exit code is its result.
pub(crate) async fn show(report: &Value) -> Result<ExitCode, BedError> {
    let is_good = tools::show("doctor", &[], report).await?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
