//! The evictions alone, of all nodes, with a process and a connection for each node.

use std::path::Path;
use std::process::Stdio;

use futures_util::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::usage::{self, Usage};
use spillway_bed::{BedError, pods};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::figures::Figures;
use crate::fixture::{End, Fixture, Scene, service_account};

pub(crate) async fn drain(fixture: &Fixture, scene: &Scene, program: &Path) -> Result<Figures, BedError> {
    let (token, client) = (fixture.token(&scene.name).await?, fixture.world.admin());
    let ca = std::fs::read_to_string(&fixture.world.ca).map_err(BedError::io("read the API server's authority"))?;
    let pods = try_join_all(scene.nodes.iter().map(|node| pods::on_node(&client, &node.name))).await?;
    let work = pods.iter().map(|pods| {
        let evictions = pods.iter().map(eviction).collect::<Vec<Value>>();
        json!({"endpoint": fixture.proxy.url(), "ca": ca, "token": token, "evictions": evictions})
    });

    let start = fixture.begin();
    let usage = try_join_all(work.map(|work| evict(program, work, scene.case.pods))).await?;
    let at = Timestamp::now();

    let user = service_account(&scene.name);
    fixture.end(scene, start, End { at, user, access_key_id: None, usage, failed: 0 }).await
}

async fn evict(program: &Path, work: Value, pods: usize) -> Result<Usage, BedError> {
    let running = || BedError::io(format!("run {}", program.display()));
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(running())?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(work.to_string().as_bytes()).await.map_err(running())?;
    drop(stdin);
    let (_, usage) = usage::until_ended(&mut child).await.map_err(running())?;
    let mut output = Vec::new();
    child.stdout.take().expect("stdout is piped").read_to_end(&mut output).await.map_err(running())?;
    let answers: Value = serde_json::from_slice(&output).unwrap_or_default();
    if answers != json!({"201": pods}) {
        let found = String::from_utf8_lossy(&output).into_owned();
        return Err(BedError::NotMeasured { wanted: format!("{pods} evictions"), seen: found });
    }
    Ok(usage)
}

/// Eviction as the function requests it: with the pod's own grace and its UID.
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
