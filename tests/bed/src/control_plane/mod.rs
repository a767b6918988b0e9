//! The control plane: etcd, then the API server, then everything that talks to it.

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

use crate::certs::Authority;
use crate::error::BedError;
use crate::kubeconfig;
use crate::site::Site;

/// Answers the admin's client once the product's rights are in place and the controllers work.
pub(crate) async fn start(site: &Site, authority: &Authority) -> Result<Client, BedError> {
    let (admin, ()) = try_join(admin(site, authority), etcd::start(site)).await?;
    api_server::start(site, authority, &admin).await?;
    try_join(controllers::start(site, authority, &admin), deploy::apply(site)).await?;
    Ok(admin)
}

pub(crate) fn url(site: &Site) -> String {
    format!("https://127.0.0.1:{}", site.ports.api_server)
}

pub(crate) fn admin_kubeconfig(site: &Site) -> PathBuf {
    site.path("admin.kubeconfig")
}

async fn admin(site: &Site, authority: &Authority) -> Result<Client, BedError> {
    site.write("ca.pem", &authority.pem())?;
    let identity = authority.user("bed-admin", Some("system:masters"))?;
    let text = kubeconfig::text(&url(site), &authority.pem(), Some(&identity));
    let path = site.write("admin.kubeconfig", &text)?;
    let config = kubeconfig::read(&path).await?;
    Client::try_from(config).map_err(BedError::kubernetes("make a client for the API server"))
}
