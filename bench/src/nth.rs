//! Drains by aws-node-termination-handler (NTH) in queue mode: one process, started before the notices.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use spillway_bed::BedError;
use spillway_bed::aws::{Call, Credentials};
use spillway_bed::leash::Leash;
use spillway_bed::usage::Usage;
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval, sleep};

use crate::circumstances::own_file;
use crate::figures::Figures;
use crate::fixture::{End, Fixture, Scene, service_account};

/// Period of reads of the AWS side's journal, the only sign of NTH's begin and end.
const READ_EVERY: Duration = Duration::from_millis(100);
/// NTH polls its queue every 2 s and its store every second: a notice arrives at any point between.
const CLOCKS: Duration = Duration::from_secs(2);
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// Longest drain; later evictions are in no figure.
const ENDS_WITHIN: Duration = Duration::from_mins(10);

/// A worker for each of 50 nodes, and a client that is hardly limited. A release before 1.26 ignores the last two.
pub(crate) const SETTINGS: [(&str, &str); 3] = [("WORKERS", "50"), ("KUBE_API_QPS", "200"), ("KUBE_API_BURST", "400")];

/// Version that Go wrote into the binary: a module version or a commit.
pub(crate) async fn version(program: &Path) -> String {
    let output = Command::new("go").args(["version", "-m"]).arg(program).stdin(Stdio::null()).output().await;
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    version_in(&text).unwrap_or_else(|| "unknown version".to_owned())
}

/// From the lines of `go version -m`; a build in a clone has the version `(devel)` and names the commit.
fn version_in(text: &str) -> Option<String> {
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(fields).collect();
    let module = lines.iter().find(|line| line.first().is_some_and(|word| word == "mod"))?.get(2)?.clone();
    let commit = lines.iter().find_map(|line| line.get(1)?.strip_prefix("vcs.revision=").map(str::to_owned));
    Some(if module.starts_with('v') { module } else { commit.unwrap_or(module) })
}

pub(crate) async fn drain(fixture: &Fixture, scene: &Scene, program: &Path) -> Result<Figures, BedError> {
    let aws = fixture.world.aws_side();
    let credentials = aws.credentials("nth", &scene.name).await?;
    let calls = async || aws.calls(Some(&credentials.access_key_id)).await;
    let queue = aws.create_queue(&fixture.world.account, &scene.name).await?;
    let mut command = command(fixture, scene, program).await?;
    environment(&mut command, fixture, &credentials).env("QUEUE_URL", &queue);
    let notices = fixture.notices(scene).await?;

    let leash = Leash::start().map_err(BedError::io("start a shell"))?;
    let mut child = command.spawn().map_err(BedError::io("start NTH"))?;
    let id = child.id().expect("the child has not been waited for");
    leash.watch(id);
    let usage = || Usage::of(id).map_err(BedError::io("read NTH's usage"));
    let listens = |calls: &[Call]| calls.iter().any(|call| call.action == "ReceiveMessage");
    until(&mut child, STARTS_WITHIN, "NTH to poll its queue", &calls, listens).await?;
    sleep(CLOCKS.mul_f64(random_part())).await;

    let before = usage()?;
    let start = fixture.begin();
    aws.put_messages(&scene.name, &notices).await?;
    // NTH deletes a message when its node is drained.
    let is_done = |call: &&Call| call.action == "DeleteMessage" && call.status == 200;
    let done = |calls: &[Call]| calls.iter().filter(is_done).count();
    let calls = match until(&mut child, ENDS_WITHIN, "NTH to end", &calls, |calls| done(calls) >= notices.len()).await {
        Err(BedError::Waited { .. }) => calls().await?,
        calls => calls?,
    };
    let mut usage = usage()?;
    usage.processor_time -= before.processor_time;
    let last = calls.iter().filter(is_done).map(|call| call.at).fold(0.0, f64::max);
    let end = End {
        at: timestamp(last),
        user: service_account(&scene.name),
        access_key_id: Some(&credentials.access_key_id),
        usage: vec![usage],
        failed: notices.len() - done(&calls).min(notices.len()),
    };
    fixture.end(scene, start, end).await
}

/// A command that runs as in a pod of the cluster.
async fn command(fixture: &Fixture, scene: &Scene, program: &Path) -> Result<Command, BedError> {
    let token = fixture.home.path().join(&scene.name);
    let written = std::fs::write(&token, fixture.token(&scene.name).await?);
    written.map_err(BedError::io("write NTH's token"))?;
    let log = fixture.world.logs.join(format!("{}-nth.log", scene.name));
    let output = File::create(&log).map_err(BedError::io(format!("create {}", log.display())))?;
    let errors = output.try_clone().map_err(BedError::io("share a log"))?;
    let mut command = Command::new(in_cluster());
    command.args([&token, &fixture.world.ca]).arg(program);
    command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0).kill_on_drop(true);
    Ok(command)
}

fn environment<'a>(command: &'a mut Command, fixture: &Fixture, credentials: &Credentials) -> &'a mut Command {
    let address = fixture.proxy.address();
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KUBERNETES_SERVICE_HOST", address.ip().to_string())
        .env("KUBERNETES_SERVICE_PORT", address.port().to_string())
        .env("ENABLE_SQS_TERMINATION_DRAINING", "true")
        .env("NODE_NAME", "nth")
        .env("AWS_REGION", &fixture.world.region)
        .env("AWS_ENDPOINT", &fixture.world.aws)
        .env("AWS_ACCESS_KEY_ID", &credentials.access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &credentials.secret_access_key)
        .env("AWS_SESSION_TOKEN", &credentials.session_token)
        .envs(SETTINGS)
}

/// Waits until NTH's AWS calls are as wanted, and returns them.
async fn until(
    child: &mut Child,
    limit: Duration,
    what: &str,
    calls: &impl AsyncFn() -> Result<Vec<Call>, BedError>,
    wanted: impl Fn(&[Call]) -> bool,
) -> Result<Vec<Call>, BedError> {
    let deadline = Instant::now() + limit;
    let mut reads = interval(READ_EVERY);
    loop {
        reads.tick().await;
        let calls = calls().await?;
        if wanted(&calls) {
            return Ok(calls);
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(BedError::NotMeasured { wanted: what.to_owned(), seen: format!("its end: {status}") });
        }
        if Instant::now() >= deadline {
            let last = format!("{} calls", calls.len());
            return Err(BedError::Waited { what: what.to_owned(), waited_s: limit.as_secs(), last });
        }
    }
}

fn in_cluster() -> PathBuf {
    own_file("in-cluster")
}

/// Between 0 and 1: the standard library seeds its hash maps from the system.
#[expect(clippy::cast_precision_loss, reason = "a random number has digits enough")]
fn random_part() -> f64 {
    RandomState::new().hash_one(()) as f64 / u64::MAX as f64
}

#[expect(clippy::cast_possible_truncation, reason = "whole microseconds are enough")]
fn timestamp(seconds: f64) -> Timestamp {
    Timestamp::from_microsecond((seconds * 1e6) as i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_module_or_else_the_commit() {
        let release = "nth: go1.26.3\n\tpath\tgithub.com/aws/nth/cmd\n\tmod\tgithub.com/aws/nth\tv1.25.6\th1:x=\n";
        assert_eq!(version_in(release).as_deref(), Some("v1.25.6"));
        let clone = "nth: go1.26.3\n\tmod\tgithub.com/aws/nth\t(devel)\t\n\tbuild\tvcs.revision=62a8761d\n";
        assert_eq!(version_in(clone).as_deref(), Some("62a8761d"));
        assert_eq!(version_in("not a Go binary"), None);
    }
}
