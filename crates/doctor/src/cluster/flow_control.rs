//! Whether deploy/optional/flow-control.yaml is in force: room at the API server for the drains of many nodes at once.
//!
//! Each answer names the flow schema that its request was put into. Spillway's own has one for nodes and one for all
//! else, both of one level; the API server's defaults make no such difference. To read the schemas themselves would
//! take one right more.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::Resource as _;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::Request;
use spillway_drainer::kube::{ApiError, call, until};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::FlowControl;

/// Where a request was put, by uid.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Flow {
    schema: String,
    level: String,
}

/// Where a request for nodes was put, and where another.
struct Flows {
    nodes: Flow,
    others: Flow,
}

/// `enroll`: the command that lets Spillway into this cluster.
pub(super) async fn look(client: &Client, enroll: &str, end: Instant) -> Check {
    match flows(client, end).await {
        Ok(Some(flows)) => said(&flows, enroll),
        Ok(None) => Check::skipped(ID, "the API server does not say how it shares its time"),
        Err(error) => {
            Check::unknown(ID, format!("the API server does not say how it shares its time: {}", chain(&error)))
        }
    }
}

async fn flows(client: &Client, end: Instant) -> Result<Option<Flows>, ApiError> {
    let nodes = flow(client, &Node::url_path(&(), None), end).await?;
    let others = flow(client, &PodDisruptionBudget::url_path(&(), None), end).await?;
    Ok(nodes.zip(others).map(|(nodes, others)| Flows { nodes, others }))
}

/// The flow into which the API server puts a request for such an object. Whatever the answer is otherwise: a
/// refusal has a flow too.
async fn flow(client: &Client, path: &str, end: Instant) -> Result<Option<Flow>, ApiError> {
    let ask = async || {
        let request = Request::new(path).list(&ListParams::default().limit(1)).map_err(kube::Error::BuildRequest);
        call(async { client.send(request?.map(Body::from)).await }).await
    };
    let answer = until(asked_until(end), ask, |_| ()).await?;
    let uid = |header| answer.headers().get(header).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (schema, level) = (uid("x-kubernetes-pf-flowschema-uid"), uid("x-kubernetes-pf-prioritylevel-uid"));
    Ok(schema.zip(level).map(|(schema, level)| Flow { schema, level }))
}

fn said(Flows { nodes, others }: &Flows, enroll: &str) -> Check {
    if nodes.schema != others.schema && nodes.level == others.level {
        return Check::made(ID, "Spillway has its own share of the API server", Vec::new());
    }
    let what = "Spillway shares the API server's level with everybody else: when fifty nodes go at once, evictions are \
                answered with 429 and a second of waiting";
    let to_do = "apply Spillway's flow control, once in each cluster (for few nodes it makes no difference)";
    let finding = Finding::new(FindingId::NoFlowControl, Severity::Warn, "FlowSchema spillway", what, to_do)
        .with_command(format!("{enroll} --with flow-control.yaml"));
    Check::made(ID, "Spillway has no share of its own of the API server", vec![finding])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CheckStatus;

    #[test]
    fn spillways_own_flow_control_puts_nodes_and_all_else_into_two_schemas_of_one_level() {
        let flow = |schema: &str, level: &str| Flow { schema: schema.to_owned(), level: level.to_owned() };
        let status = |nodes: Flow, others: Flow| said(&Flows { nodes, others }, "tools/enroll").status;
        assert_eq!(status(flow("claims", "spillway"), flow("others", "spillway")), CheckStatus::Ok);
        assert_eq!(status(flow("global-default", "l"), flow("global-default", "l")), CheckStatus::Warn);
        assert_eq!(status(flow("of-somebody", "l-1"), flow("global-default", "l-2")), CheckStatus::Warn);
    }
}
