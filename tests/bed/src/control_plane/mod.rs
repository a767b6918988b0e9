//! A cluster's control plane: etcd, then the API server, then everything that talks to it.

mod api_server;
mod authenticator;
mod controllers;
mod deploy;
mod etcd;

use std::path::PathBuf;

use futures_util::future::try_join;
use kube::Client;

pub(crate) use api_server::audit_log;
pub(crate) use authenticator::start as start_authenticator;

use crate::error::BedError;
use crate::kubeconfig;
use crate::layout::ClusterLayout;

/// Answers the admin's client once the product's rights are in place and the controllers work.
pub(crate) async fn start(cluster: &ClusterLayout<'_>) -> Result<Client, BedError> {
    let (admin, ()) = try_join(admin(cluster), etcd::start(cluster)).await?;
    api_server::start(cluster, &admin).await?;
    let prepare = async {
        match cluster.unprepared {
            Some(_) => Ok(()),
            None => deploy::apply(cluster).await,
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
