//! A running cluster, as a test holds it: where everything is, and a client for each side.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::aws::Aws;
use crate::error::BedError;
use crate::kubeconfig;
use crate::proxy::Proxy;

/// A cluster, and the AWS side that it is in: where everything is. The supervisor's one line on stdout
/// has one for each.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cluster {
    /// The world's.
    pub dir: PathBuf,
    /// The world's; a cluster's are in a folder of its name.
    pub logs: PathBuf,
    /// `AWS_ENDPOINT_URL`.
    pub aws: String,
    pub region: String,
    pub account: String,
    /// Its name, as EKS knows it.
    pub cluster: String,
    /// The admin's: for people, and for the bed's own work. Never for what the product does.
    pub kubeconfig: PathBuf,
    pub api_server: String,
    /// The API server's certificate authority, PEM.
    pub ca: PathBuf,
    pub audit_log: PathBuf,
    pub kubectl: PathBuf,
    /// What the kubeconfig says. The supervisor, which writes that file, has none.
    #[serde(skip)]
    pub(crate) admin: Option<kube::Config>,
}

impl Cluster {
    /// What a person types to get at it, and where to look.
    #[must_use]
    pub fn how_to_use(&self) -> String {
        format!(
            "  export KUBECONFIG={kubeconfig}
  alias kubectl={kubectl}
  export AWS_ENDPOINT_URL={aws} AWS_REGION={region}

  logs           {logs}
  audit log      {audit_log}
  the bed's API  {aws}/bed/",
            kubeconfig = self.kubeconfig.display(),
            kubectl = self.kubectl.display(),
            aws = self.aws,
            region = self.region,
            logs = self.logs.display(),
            audit_log = self.audit_log.display(),
        )
    }

    /// As a test holds it, from the supervisor's description.
    pub(crate) async fn signed_in(mut self) -> Result<Self, BedError> {
        self.admin = Some(kubeconfig::read(&self.kubeconfig).await?);
        Ok(self)
    }

    /// A client with every right. Made again each time: a client dies with the runtime it was made
    /// on, and tests that share a world each have their own.
    #[must_use]
    pub fn admin(&self) -> kube::Client {
        let admin = self.admin.clone().expect("every cluster of a world has signed in");
        kube::Client::try_from(admin).expect("the supervisor used this configuration")
    }

    /// The bed's own API of the AWS side. Made again each time, like [`Cluster::admin`].
    #[must_use]
    pub fn aws_side(&self) -> Aws {
        Aws::new(&self.aws)
    }

    /// A network before the API server, as near as can be until it is told.
    pub fn proxy(&self) -> Result<Proxy, BedError> {
        let address = self.api_server.trim_start_matches("https://").parse().expect("an address and a port");
        Proxy::start(address).map_err(BedError::io("start a proxy"))
    }
}
