//! The drain of aws-node-termination-handler in queue mode: one process, told by its queue.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::Call;
use spillway_bed::setup::cached;
use spillway_bed::usage::Usage;
use spillway_bed::{BedError, guard};
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval, sleep};

use super::case::Tool;
use super::figures::Drained;
use super::fixture::{NAMESPACE, PeersFixture, Scene};
use super::until_evicted;
use crate::measure::own_file;

/// Nothing tells when it begins or ends, so the AWS side's journal is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// It looks at its queue every 2 s and at what it has received every second: a notice comes at any
/// point between.
const CLOCKS: Duration = Duration::from_secs(2);
const START: Duration = Duration::from_secs(30);

/// The release that `scripts/peers` builds.
pub(super) fn release() -> &'static str {
    let of_module = |line: &'static str| line.trim().strip_prefix("github.com/aws/aws-node-termination-handler ");
    let version = include_str!("../../peers/go.mod").lines().find_map(of_module).unwrap_or_default();
    version.split(' ').next().unwrap_or_default()
}

/// The builds of it that can be run here.
#[derive(Debug)]
pub(super) struct Builds {
    released: Option<PathBuf>,
    /// One that knows `KUBE_API_QPS`.
    tuned: Option<PathBuf>,
}

impl Builds {
    /// With the reasons why a build cannot be run.
    pub(super) async fn find(tuned: Option<PathBuf>) -> (Self, Vec<String>) {
        if let Err(why) = can_run().await {
            let why = format!("NTH: it cannot be given a service account's files on this machine ({why})");
            return (Self { released: None, tuned: None }, vec![why]);
        }
        let released = Some(cached("peers/bin/nth")).filter(|program| program.is_file());
        let tuned = tuned.filter(|program| program.is_file());
        let not_built = released.is_none().then_some("NTH: it is not built; `make peers` does it");
        let not_named = tuned.is_none().then_some(
            "NTH, tuned: the release does not know `KUBE_API_QPS`, and no later build was named (`make peers NTH_TUNED=…`)",
        );
        let missing = not_built.into_iter().chain(not_named).map(str::to_owned).collect();
        (Self { released, tuned }, missing)
    }

    /// None of another tool.
    pub(super) fn of(&self, tool: Tool) -> Option<&Path> {
        match tool {
            Tool::Spillway | Tool::Kubectl | Tool::Baseline => None,
            Tool::Nth | Tool::NthWorkers => self.released.as_deref(),
            Tool::NthTuned => self.tuned.as_deref(),
        }
    }
}

/// Whether a program can be made to take itself for a pod's; else why not.
async fn can_run() -> Result<(), String> {
    let any_file = own_file("Cargo.toml");
    let tried = Command::new(in_cluster()).args([&any_file, &any_file]).arg("true").stdin(Stdio::null()).output().await;
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) async fn drain(
    fixture: &PeersFixture,
    scene: &Scene,
    builds: &Builds,
    tool: Tool,
) -> Result<Drained, BedError> {
    let program = builds.of(tool).expect("a tool without a build has no turn");
    let aws = fixture.world.aws_side();
    let credentials = aws.credentials("nth", &scene.name).await?;
    let calls = async || aws.calls(Some(&credentials.access_key_id)).await;
    let queue = aws.create_queue(&fixture.world.account, &scene.name).await?;
    let mut command = command(fixture, scene, program).await?;
    command
        .env("AWS_ACCESS_KEY_ID", &credentials.access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &credentials.secret_access_key)
        .env("AWS_SESSION_TOKEN", &credentials.session_token)
        .env("QUEUE_URL", &queue)
        .envs(tool.settings().iter().copied());
    let mut notices = Vec::with_capacity(scene.nodes.len());
    for node in &scene.nodes {
        let id = format!("{}-{}", scene.name, node.instance_id);
        notices.push(aws.spot_notice(&id, &node.instance_id).await?);
    }

    let mut child = command.spawn().map_err(BedError::io("start NTH"))?;
    let id = child.id().expect("nobody has waited for it yet");
    let usage = || Usage::of(id).map_err(BedError::io("read what NTH has used"));
    let listens = |calls: &[Call]| calls.iter().any(|call| call.action == "ReceiveMessage");
    until(&mut child, START, "NTH to ask its queue", &calls, listens).await?;
    sleep(CLOCKS.mul_f64(random_part())).await;

    let before = usage()?;
    let begin = Timestamp::now();
    aws.put_messages(&scene.name, &notices).await?;
    // It takes a message off the queue when its node is drained.
    let is_done = |call: &&Call| call.action == "DeleteMessage" && call.status == 200;
    let all = |calls: &[Call]| calls.iter().filter(is_done).count() >= notices.len();
    let calls = match until(&mut child, scene.limit, "NTH to be done", &calls, all).await {
        Err(BedError::Waited { .. }) if scene.may_be_left => calls().await?,
        calls => calls?,
    };
    let mut usage = usage()?;
    usage.processor_time -= before.processor_time;

    let user = format!("system:serviceaccount:{NAMESPACE}:{}", scene.name);
    let requests = until_evicted(AuditLog::of_user(&fixture.world.audit_log, &user), begin, scene).await?;
    let end = calls.iter().filter(is_done).map(|call| call.at).fold(0.0, f64::max);
    Ok(Drained { begin, end: at(end), requests, usage: vec![usage] })
}

/// As in a pod of the cluster. It dies with this program.
async fn command(fixture: &PeersFixture, scene: &Scene, program: &Path) -> Result<Command, BedError> {
    let world = &fixture.world;
    let token = fixture.home.path().join(&scene.name);
    let written = std::fs::write(&token, fixture.token(&scene.name).await?);
    written.map_err(BedError::io("write NTH's token"))?;
    let log = world.logs.join(format!("{}-nth.log", scene.name));
    let output = File::create(&log).map_err(BedError::io(format!("create {}", log.display())))?;
    let errors = output.try_clone().map_err(BedError::io("share a log"))?;
    let mut command = Command::from(guard::command()?);
    command
        .arg(in_cluster())
        .args([&token, &world.ca])
        .arg(program)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KUBERNETES_SERVICE_HOST", fixture.proxy.address().ip().to_string())
        .env("KUBERNETES_SERVICE_PORT", fixture.proxy.address().port().to_string())
        .env("ENABLE_SQS_TERMINATION_DRAINING", "true")
        .env("NODE_NAME", "nth")
        .env("AWS_REGION", &world.region)
        .env("AWS_ENDPOINT", &world.aws)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .kill_on_drop(true);
    Ok(command)
}

/// Waits until its AWS calls are as wanted, and answers them.
async fn until(
    child: &mut Child,
    limit: Duration,
    what: &str,
    calls: &impl AsyncFn() -> Result<Vec<Call>, BedError>,
    wanted: impl Fn(&[Call]) -> bool,
) -> Result<Vec<Call>, BedError> {
    let deadline = Instant::now() + limit;
    let mut look = interval(LOOK_EVERY);
    loop {
        look.tick().await;
        let calls = calls().await?;
        if wanted(&calls) {
            return Ok(calls);
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(BedError::NotMeasured { wanted: what.to_owned(), seen: format!("its end: {status}") });
        }
        if Instant::now() >= deadline {
            let last = calls.iter().map(|call| format!("{} {}", call.action, call.status)).collect::<Vec<_>>();
            return Err(BedError::Waited { what: what.to_owned(), waited_s: limit.as_secs(), last: last.join(", ") });
        }
    }
}

fn in_cluster() -> PathBuf {
    own_file("peers/in-cluster")
}

/// Between 0 and 1: the standard library seeds its hash maps from the system.
#[expect(clippy::cast_precision_loss, reason = "a random number has digits enough")]
fn random_part() -> f64 {
    RandomState::new().hash_one(()) as f64 / u64::MAX as f64
}

#[expect(clippy::cast_possible_truncation, reason = "whole microseconds are meant")]
fn at(seconds: f64) -> Timestamp {
    Timestamp::from_microsecond((seconds * 1e6) as i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_one_that_is_built() {
        assert!(release().starts_with("v1."), "{}", release());
    }
}
