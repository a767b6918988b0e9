//! The AWS side: one Python process with moto and the stand-ins, and the cloud's controllers of nodes.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use serde::Deserialize;
use tokio::time::sleep;

use crate::aws::{Aws, Change, Changed, Instance};
use crate::control_plane;
use crate::error::BedError;
use crate::kubelet;
use crate::lambda::random;
use crate::layout::{ACCOUNT, ClusterLayout, Layout, REGION};
use crate::processes::Program;
use crate::setup::{own_file, project_file};

#[derive(Debug)]
pub(crate) struct Cloud {
    pub(crate) url: String,
    /// The CONNECT proxy in the place of STS, and its authority.
    pub(crate) proxy: String,
    pub(crate) proxy_ca: PathBuf,
}

/// Port file of the AWS side.
#[derive(Debug, Deserialize)]
struct CloudPorts {
    http: u16,
    proxy: u16,
    proxy_ca: PathBuf,
}

pub(crate) async fn start(layout: &Layout) -> Result<Cloud, BedError> {
    let folder = layout.path("aws");
    std::fs::create_dir(&folder).map_err(BedError::io("make the AWS side's folder"))?;
    let port_file = folder.join("ports.json");
    let program = Program::new("aws", layout.setup.python.clone(), &layout.logs)
        .args(["-m".to_owned(), "bed_aws".to_owned()])
        .args([
            format!("--port-file={}", port_file.display()),
            format!("--dir={}", folder.display()),
            format!("--template={}", project_file("template.yaml")?.display()),
            format!("--region={REGION}"),
            format!("--account={ACCOUNT}"),
        ])
        .args(layout.options.clusters.iter().map(|name| format!("--cluster={name}")))
        .args(rights().map(|file| format!("--rights={}", file.display())))
        .env("PYTHONPATH", own_file("aws"))
        .env("PYTHONUNBUFFERED", "1");
    let process = layout.processes.start(program)?;
    let ports = async || -> std::io::Result<CloudPorts> {
        // Half a file is no JSON.
        Ok(serde_json::from_slice(&tokio::fs::read(&port_file).await?)?)
    };
    let ports = layout.processes.until_ready(&process, Duration::from_mins(1), ports).await?;
    Ok(Cloud {
        url: format!("http://127.0.0.1:{}", ports.http),
        proxy: format!("http://127.0.0.1:{}", ports.proxy),
        proxy_ca: ports.proxy_ca,
    })
}

/// File of the rights that this world uses, if `SPILLWAY_RIGHTS` names a folder.
fn rights() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("SPILLWAY_RIGHTS")?);
    Some(folder.join(format!("{}-{:016x}.jsonl", std::process::id(), random())))
}

/// Registers a cluster for `DescribeCluster`.
pub(crate) async fn register_cluster(cluster: &ClusterLayout<'_>, cloud: &Cloud) -> Result<(), BedError> {
    let ca = STANDARD.encode(cluster.authority.pem());
    Aws::new(&cloud.url).put_cluster(cluster.name, &control_plane::url(cluster), &ca, cluster.unprepared).await
}

/// Deletes the nodes of terminated instances, as the cloud node controller does, and stops and boots kubelets with their
/// instances. Never returns.
pub(crate) async fn follow_instances(aws: Aws, clusters: Vec<Client>) -> std::convert::Infallible {
    let mut since = 0;
    loop {
        let done: Result<(), BedError> = async {
            let page = aws.changes(since, 20).await?;
            for change in &page.changes {
                for cluster in &clusters {
                    follow(cluster, change).await?;
                }
            }
            since = page.next;
            Ok(())
        }
        .await;
        if let Err(error) = done {
            eprintln!("node lifecycle: {}", error.story());
            // Prevents a busy loop: both sides should answer.
            sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn follow(client: &Client, change: &Change) -> Result<(), BedError> {
    let nodes = Api::<Node>::all(client.clone());
    let Some(name) = node_of(&nodes, &change.instance).await? else { return Ok(()) };
    match change.what {
        Changed::Running => kubelet::boot(client, &name).await,
        Changed::Stopped => kubelet::silence(client, &name).await,
        Changed::Rebooted => {
            kubelet::silence(client, &name).await?;
            kubelet::boot(client, &name).await
        }
        Changed::Terminated => match nodes.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop).map_err(BedError::kubernetes(format!("delete node {name}"))),
        },
    }
}

/// The node of an instance, if the node has joined.
async fn node_of(nodes: &Api<Node>, instance: &Instance) -> Result<Option<String>, BedError> {
    let finding = BedError::kubernetes(format!("find the node of {}", instance.instance_id));
    let listed = nodes.list(&ListParams::default()).await.map_err(finding)?;
    let is_node = |node: &Node| {
        let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        provider_id.is_some_and(|provider_id| provider_id.ends_with(&instance.instance_id))
    };
    Ok(listed.items.into_iter().find(is_node).and_then(|node| node.metadata.name))
}
