//! `tools/spillway`, which prints documents.

use std::ffi::OsStr;
use std::process::Stdio;

use serde_json::Value;
use spillway_bed::BedError;
use spillway_bed::setup::{Setup, project_file};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Runs a subcommand over a document. Returns `true` if it succeeds.
pub(crate) async fn show(command: &str, arguments: &[&OsStr], document: &Value) -> Result<bool, BedError> {
    let running = || BedError::io(format!("run tools/spillway {command}"));
    let mut child = Command::new(Setup::find()?.python)
        .arg(project_file("tools/spillway")?)
        .args([command, "--file", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(running())?;
    let mut input = child.stdin.take().expect("stdin is piped");
    input.write_all(document.to_string().as_bytes()).await.map_err(running())?;
    drop(input);
    Ok(child.wait().await.map_err(running())?.success())
}
