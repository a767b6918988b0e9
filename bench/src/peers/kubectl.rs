//! `kubectl drain`, as people run it: one process, all nodes as its arguments.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use jiff::Timestamp;
use spillway_bed::BedError;
use spillway_bed::audit::AuditLog;
use spillway_bed::usage::until_ended;
use tokio::process::Command;

use super::figures::Drained;
use super::fixture::{NAMESPACE, PeersFixture, Scene};
use super::until_evicted;

/// What people give it, so that it drains whatever runs on the node.
pub(super) const FLAGS: [&str; 3] = ["--ignore-daemonsets", "--delete-emptydir-data", "--force"];

pub(super) async fn version(program: &Path) -> Result<String, BedError> {
    let output = Command::new(program).args(["version", "--client"]).env_clear().output().await;
    let output = output.map_err(BedError::io("ask kubectl for its version"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix("Client Version: "));
    Ok(version.unwrap_or("of an unknown version").to_owned())
}

pub(super) async fn drain(fixture: &PeersFixture, scene: &Scene) -> Result<Drained, BedError> {
    let world = &fixture.world;
    let token = fixture.token(&scene.name).await?;
    let log = world.logs.join(format!("{}-kubectl.log", scene.name));
    let output = File::create(&log).map_err(BedError::io(format!("create {}", log.display())))?;
    let errors = output.try_clone().map_err(BedError::io("share a log"))?;

    let begin = Timestamp::now();
    let mut child = Command::new(&world.kubectl)
        .arg("drain")
        .args(scene.nodes.iter().map(|node| &node.name))
        .args(FLAGS)
        .arg(format!("--server={}", fixture.proxy.url()))
        .arg(format!("--certificate-authority={}", world.ca.display()))
        .arg(format!("--token={token}"))
        .env_clear()
        .env("HOME", fixture.home.path())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .kill_on_drop(true)
        .spawn()
        .map_err(BedError::io("start kubectl"))?;
    let (status, usage) = until_ended(&mut child).await.map_err(BedError::io("wait for kubectl"))?;
    let end = Timestamp::now();

    if !status.success() {
        let seen = std::fs::read_to_string(&log).unwrap_or_default();
        return Err(BedError::NotMeasured { wanted: "kubectl drain".to_owned(), seen: format!("{status}: {seen}") });
    }
    let user = format!("system:serviceaccount:{NAMESPACE}:{}", scene.name);
    let requests = until_evicted(AuditLog::of_user(&world.audit_log, &user), begin, scene).await?;
    Ok(Drained { begin, end, requests, usage: vec![usage] })
}
