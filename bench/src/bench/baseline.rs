//! One run of the baseline: a bare loop that posts a node's evictions over one HTTP/2 connection.

use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spillway_bed::BedError;
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::Credentials;
use spillway_bed::setup::Setup;

use super::drain::evictions;
use super::fixture::{BenchFixture, FullNode, ROLE};
use crate::measure::{baseline, micros};

const LIMIT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// From its first request to its last answer, by the API server's clock, as a drain is measured.
    #[serde(rename = "evictions_us", with = "micros")]
    pub(super) evictions: Duration,
    /// From before its connection's TCP and TLS handshakes to its last answer, by its own clock.
    #[serde(rename = "with_connection_us", with = "micros")]
    pub(super) with_connection: Duration,
}

pub(super) async fn run(fixture: &BenchFixture, node: &FullNode, distance: Duration) -> Result<Baseline, BedError> {
    let world = &fixture.world;
    let session = format!("baseline-{}", node.node.instance_id);
    let credentials = world.aws_side().credentials(ROLE, &session).await?;
    let proxy = world.proxy()?;
    proxy.set_round_trip(distance);
    let token = token(fixture, &credentials)?;
    let run = baseline::evict(&fixture.baseline, world, &proxy.url(), &token, &node.pods).await?;

    let mut audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/{ROLE}/{session}"));
    let all = audit.wait_until("the baseline's evictions", LIMIT, |requests| {
        requests.iter().filter(|request| request.done.is_some()).count() == node.pods.len()
    });
    let requests = all.await?;
    fixture.until_empty(node).await?;
    let first = requests[0].received;
    let evictions = evictions(first, &requests).expect("all were answered");
    Ok(Baseline { evictions: evictions.to_last_answer, with_connection: run.with_connection })
}

/// As people get theirs: the authenticator signs it.
fn token(fixture: &BenchFixture, credentials: &Credentials) -> Result<String, BedError> {
    let authenticator = Setup::find()?.program("aws-iam-authenticator");
    let output = Command::new(authenticator)
        .args(["token", "--token-only", "--cluster-id", &fixture.world.cluster])
        .env_clear()
        .env("AWS_REGION", &fixture.world.region)
        .env("AWS_STS_REGIONAL_ENDPOINTS", "regional")
        .env("AWS_ACCESS_KEY_ID", &credentials.access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &credentials.secret_access_key)
        .env("AWS_SESSION_TOKEN", &credentials.session_token)
        .output()
        .map_err(BedError::io("sign a token"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BedError::io("sign a token")(std::io::Error::other(why)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
