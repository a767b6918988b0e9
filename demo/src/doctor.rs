//! What the doctor finds: a small cluster is looked at once, and the report shown to a person by `tools/spillway doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use spillway_bed::lambda::{Lambda, LambdaOptions};
use spillway_bed::life_like::life_like_cluster;
use spillway_bed::setup::project_file;
use spillway_bed::{BedError, World};

use crate::tools;

/// Starts the cluster of the demo, has the function look at it, and ends as the report does. The report itself goes
/// into a file too, if one is named.
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
    let found = ask(&lambda).await?;
    if let Some(file) = &report {
        std::fs::write(file, format!("{found:#}\n")).map_err(BedError::io("write the report"))?;
    }
    println!();
    show(&found).await
}

/// Sends the function the sample of `events/`; answers the report.
pub(crate) async fn ask(lambda: &Lambda) -> Result<Value, BedError> {
    let asking = || BedError::io("ask for the doctor");
    let sample = std::fs::read_to_string(project_file("events/doctor.json")?).map_err(asking())?;
    let sample: Value = serde_json::from_str(&sample).map_err(std::io::Error::other).map_err(asking())?;
    let outcome = lambda.invoke(&sample).await;
    outcome.result.map_err(|error| asking()(std::io::Error::other(error.to_string())))
}

/// Prints a report; answers whether it is good.
pub(crate) async fn show(report: &Value) -> Result<ExitCode, BedError> {
    let is_good = tools::show("doctor", &[], report).await?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
