//! The receipt as a picture for a browser, drawn by tools/timeline.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use spillway_bed::BedError;
use spillway_bed::setup::{Setup, cached, project_file};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Draws a receipt, over the picture that an earlier demo made for the same rule, and answers where it is.
pub(super) async fn draw(receipt: &Value, rule: &str) -> Result<PathBuf, BedError> {
    let drawing = || BedError::io("draw the receipt");
    let file = cached(&format!("demo/{rule}.html"));
    std::fs::create_dir_all(file.parent().expect("it is in a folder")).map_err(drawing())?;
    let mut timeline = Command::new(Setup::find()?.python)
        .arg(project_file("tools/timeline")?)
        .arg("--output")
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(drawing())?;
    let mut input = timeline.stdin.take().expect("it is piped");
    input.write_all(receipt.to_string().as_bytes()).await.map_err(drawing())?;
    drop(input);
    let done = timeline.wait_with_output().await.map_err(drawing())?;
    if done.status.success() {
        Ok(file)
    } else {
        Err(drawing()(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())))
    }
}
