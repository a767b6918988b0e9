//! One run of the floor: a bare loop that posts a node's evictions over one HTTP/2 connection.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::drain::evictions;
use super::field::{Field, FullNode, ROLE};
use crate::audit::AuditLog;
use crate::aws::Credentials;
use crate::error::BedError;
use crate::measure::proxy;
use crate::setup::Setup;

const LIMIT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy)]
pub(super) struct Floor {
    /// From its first request to its last answer, by the API server's clock, as a drain is measured.
    pub(super) evictions: Duration,
    /// The same with its connection's TCP and TLS handshakes, by its own clock.
    pub(super) with_connection: Duration,
}

pub(super) async fn run(field: &Field, node: &FullNode, distance: Duration) -> Result<Floor, BedError> {
    let world = &field.world;
    let session = format!("floor-{}", node.node.instance_id);
    let credentials = world.aws_side().credentials(ROLE, &session).await?;
    let proxy = proxy(world)?;
    proxy.set_round_trip(distance);
    let evictions_to_post: Vec<Value> = node.pods.iter().map(eviction).collect();
    let work = json!({
        "endpoint": proxy.url(),
        "ca": std::fs::read_to_string(&world.ca).map_err(BedError::io("read the API server's authority"))?,
        "token": token(field, &credentials)?,
        "evictions": evictions_to_post,
    });
    let mut child = Command::new(&field.floor)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(BedError::io(format!("start {}", field.floor.display())))?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(work.to_string().as_bytes()).map_err(BedError::io("hand the floor its work"))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(BedError::io("wait for the floor"))?;
    let done: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let pods = node.pods.len();
    if done["answers"] != json!({"201": pods}) {
        let seen = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(BedError::NotMeasured { wanted: format!("{pods} evictions by the floor"), seen });
    }
    let with_connection = Duration::from_micros(done["with_connection_us"].as_u64().unwrap_or_default());

    let mut audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/{ROLE}/{session}"));
    let all = audit.wait_until("the floor's evictions", LIMIT, |requests| {
        requests.iter().filter(|request| request.done.is_some()).count() == pods
    });
    let requests = all.await?;
    field.until_empty(node).await?;
    let first = requests[0].received;
    let evictions = evictions(first, &requests).expect("all were answered");
    Ok(Floor { evictions: evictions.to_last_answer, with_connection })
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

/// As people get theirs: the authenticator signs it.
fn token(field: &Field, credentials: &Credentials) -> Result<String, BedError> {
    let authenticator = Setup::find()?.program("aws-iam-authenticator");
    let output = Command::new(authenticator)
        .args(["token", "--token-only", "--cluster-id", &field.world.cluster])
        .env_clear()
        .env("AWS_REGION", &field.world.region)
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
