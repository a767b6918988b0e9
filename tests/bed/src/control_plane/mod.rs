//! A cluster's control plane: etcd, the API server, and its clients.

mod api_server;
mod authenticator;
mod controllers;

use std::fs::DirEntry;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::try_join;
use kube::Client;
use tokio::net::TcpStream;

pub(crate) use api_server::audit_log;
pub(crate) use authenticator::start as start_authenticator;

use crate::error::BedError;
use crate::kubeconfig;
use crate::layout::ClusterLayout;
use crate::setup::project_file;

/// Returns the admin's client when the product's objects are applied and the controllers work.
pub(crate) async fn start(cluster: &ClusterLayout<'_>) -> Result<Client, BedError> {
    let (admin, ()) = try_join(admin(cluster), start_etcd(cluster)).await?;
    api_server::start(cluster, &admin).await?;
    let prepare = async {
        match cluster.unprepared {
            Some(_) => Ok(()),
            None => apply(cluster).await,
        }
    };
    try_join(controllers::start(cluster, &admin), prepare).await?;
    Ok(admin)
}

pub(crate) fn url(cluster: &ClusterLayout<'_>) -> String {
    format!("https://127.0.0.1:{}", cluster.ports.api_server)
}

pub(crate) fn admin_kubeconfig(cluster: &ClusterLayout<'_>) -> PathBuf {
    cluster.path("admin.kubeconfig")
}

async fn admin(cluster: &ClusterLayout<'_>) -> Result<Client, BedError> {
    cluster.write("ca.pem", &cluster.authority.pem())?;
    let identity = cluster.authority.user("bed-admin", Some("system:masters"))?;
    let text = kubeconfig::text(&url(cluster), &cluster.authority.pem(), Some(&identity));
    let path = cluster.write("admin.kubeconfig", &text)?;
    let config = kubeconfig::read(&path).await?;
    Client::try_from(config).map_err(BedError::kubernetes("make a client for the API server"))
}

/// Applies `deploy/` and `deploy/optional/`.
async fn apply(cluster: &ClusterLayout<'_>) -> Result<(), BedError> {
    let mut files = vec![project_file("deploy")?];
    let optional = project_file("deploy/optional")?.read_dir().and_then(Iterator::collect::<Result<Vec<_>, _>>);
    files.extend(optional.map_err(BedError::io("read deploy/optional"))?.iter().map(DirEntry::path));
    files.retain(|file| cluster.options.flow_control || !file.ends_with("flow-control.yaml"));
    let program = cluster
        .program("kubectl")
        .args([format!("--kubeconfig={}", admin_kubeconfig(cluster).display()), "apply".to_owned()])
        .args(files.iter().map(|file| format!("--filename={}", file.display())));
    cluster.processes.run(program).await
}

/// Starts etcd without disk syncs.
async fn start_etcd(cluster: &ClusterLayout<'_>) -> Result<(), BedError> {
    let clients = format!("http://127.0.0.1:{}", cluster.ports.etcd);
    let peers = format!("http://127.0.0.1:{}", cluster.ports.etcd_peers);
    let program = cluster.program("etcd").args([
        "--name=bed".to_owned(),
        format!("--data-dir={}", cluster.path("etcd").display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=bed={peers}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]);
    let etcd = cluster.processes.start(program)?;
    // etcd listens when it can answer.
    let connect = || TcpStream::connect(("127.0.0.1", cluster.ports.etcd));
    cluster.processes.until_ready(&etcd, Duration::from_secs(30), connect).await.map(drop)
}
