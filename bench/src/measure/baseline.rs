//! The baseline: a program that posts a node's evictions over one HTTP/2 connection, all at once, and nothing else.
//! Whatever drains the node has to do as much.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::usage::{self, Usage};
use spillway_bed::{BedError, World};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// What one run came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BaselineRun {
    /// With its connection's TCP and TLS handshakes, by its own clock.
    pub(crate) with_connection: Duration,
    pub(crate) usage: Usage,
}

/// The program, as `cargo lambda build` makes it: built and linked as the function is.
pub(crate) fn program() -> Result<PathBuf, BedError> {
    built("spillway-baseline")
}

/// A program of `bench/baseline`, where `cargo lambda build` puts it.
pub(crate) fn built(name: &str) -> Result<PathBuf, BedError> {
    let own = std::env::current_exe().map_err(BedError::io("find this program's own path"))?;
    let target = own.ancestors().nth(2).unwrap_or(&own);
    Ok(target.join("lambda").join(name).join("bootstrap"))
}

/// Evicts these pods through an API server's endpoint.
pub(crate) async fn evict(
    program: &Path,
    world: &World,
    endpoint: &str,
    token: &str,
    pods: &[Pod],
) -> Result<BaselineRun, BedError> {
    let running = || BedError::io(format!("run {}", program.display()));
    let work = json!({
        "endpoint": endpoint,
        "ca": std::fs::read_to_string(&world.ca).map_err(BedError::io("read the API server's authority"))?,
        "token": token,
        "evictions": pods.iter().map(eviction).collect::<Vec<Value>>(),
    });
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(running())?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(work.to_string().as_bytes()).await.map_err(running())?;
    drop(stdin);
    let (_, usage) = usage::until_ended(&mut child).await.map_err(running())?;
    let mut output = Vec::new();
    child.stdout.take().expect("stdout is piped").read_to_end(&mut output).await.map_err(running())?;
    let done: Value = serde_json::from_slice(&output).unwrap_or_default();
    if done["answers"] != json!({"201": pods.len()}) {
        let seen = String::from_utf8_lossy(&output).into_owned();
        return Err(BedError::NotMeasured { wanted: format!("{} evictions", pods.len()), seen });
    }
    let with_connection = Duration::from_micros(done["with_connection_us"].as_u64().unwrap_or_default());
    Ok(BaselineRun { with_connection, usage })
}

/// As the function asks for it, its own grace and its UID.
fn eviction(pod: &Pod) -> Value {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let body = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid()}},
    });
    json!({"path": format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"), "body": body.to_string()})
}
