//! The API server's version, for those who read the report.

use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use spillway_drainer::kube::{call, until};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::CheckId;
use crate::report::Check;

const ID: CheckId = CheckId::Version;

pub(super) async fn look(client: &Client, end: Instant) -> Check {
    match until(asked_until(end), async || call(client.apiserver_version()).await, |_| ()).await {
        Ok(Info { git_version, .. }) => Check::made(ID, format!("the API server is {git_version}"), Vec::new()),
        Err(error) => Check::unknown(ID, format!("the API server does not say which version it is: {}", chain(&error))),
    }
}
