//! The AWS side: one Python process with moto and the stand-ins, and what the cloud does to nodes.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use serde::Deserialize;
use tokio::time::sleep;

use crate::aws::{Aws, Terminated};
use crate::control_plane;
use crate::error::BedError;
use crate::processes::Program;
use crate::setup::{own_file, project_file};
use crate::site::{ACCOUNT, ClusterSite, REGION, Site};

#[derive(Debug)]
pub(crate) struct Cloud {
    pub(crate) url: String,
    /// The CONNECT proxy that stands in for STS, and the authority that it signs with.
    pub(crate) proxy: String,
    pub(crate) proxy_ca: PathBuf,
}

/// What the AWS side writes when it is up.
#[derive(Debug, Deserialize)]
struct Ports {
    http: u16,
    proxy: u16,
    proxy_ca: PathBuf,
}

pub(crate) async fn start(site: &Site) -> Result<Cloud, BedError> {
    let folder = site.path("aws");
    std::fs::create_dir(&folder).map_err(BedError::io("make the AWS side's folder"))?;
    let port_file = folder.join("ports.json");
    let program = Program::new("aws", site.setup.python.clone(), &site.logs)
        .args(["-m".to_owned(), "bed_aws".to_owned()])
        .args([
            format!("--port-file={}", port_file.display()),
            format!("--dir={}", folder.display()),
            format!("--template={}", project_file("template.yaml")?.display()),
            format!("--region={REGION}"),
            format!("--account={ACCOUNT}"),
        ])
        .args(site.options.clusters.iter().map(|name| format!("--cluster={name}")))
        .env("PYTHONPATH", own_file("aws"))
        .env("PYTHONUNBUFFERED", "1");
    let process = site.processes.start(program)?;
    let ports = async || -> std::io::Result<Ports> {
        // Half a file is not JSON yet.
        Ok(serde_json::from_slice(&tokio::fs::read(&port_file).await?)?)
    };
    let ports = site.processes.until_ready(&process, Duration::from_mins(1), ports).await?;
    Ok(Cloud {
        url: format!("http://127.0.0.1:{}", ports.http),
        proxy: format!("http://127.0.0.1:{}", ports.proxy),
        proxy_ca: ports.proxy_ca,
    })
}

/// Makes a cluster known to `DescribeCluster`.
pub(crate) async fn register_cluster(cluster: &ClusterSite<'_>, cloud: &Cloud) -> Result<(), BedError> {
    let ca = STANDARD.encode(cluster.authority.pem());
    Aws::new(&cloud.url).put_cluster(cluster.name, &control_plane::url(cluster), &ca).await
}

/// Deletes the nodes of instances that are gone, as each cluster's cloud node controller does. Never returns.
pub(crate) async fn delete_nodes_of_gone_instances(aws: Aws, clusters: Vec<Client>) -> std::convert::Infallible {
    let clusters: Vec<_> = clusters.into_iter().map(Api::<Node>::all).collect();
    let mut since = 0;
    loop {
        let done: Result<(), BedError> = async {
            let page = aws.terminated(since, Duration::from_secs(20)).await?;
            for instance in &page.instances {
                for nodes in &clusters {
                    delete_node(nodes, instance).await?;
                }
            }
            since = page.next;
            Ok(())
        }
        .await;
        if let Err(error) = done {
            eprintln!("node lifecycle: {}", error.story());
            // Only not to spin: both sides should answer.
            sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn delete_node(nodes: &Api<Node>, gone: &Terminated) -> Result<(), BedError> {
    let doing = || BedError::kubernetes(format!("delete the node of {}", gone.instance_id));
    let listed = nodes.list(&ListParams::default()).await.map_err(doing())?;
    for node in listed.items {
        let provider_id = node.spec.and_then(|spec| spec.provider_id);
        if provider_id.as_deref() != Some(&gone.provider_id) {
            continue;
        }
        let name = node.metadata.name.unwrap_or_default();
        match nodes.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted.map_err(doing())?),
        }
    }
    Ok(())
}
