//! A running cluster: its addresses and files, and a client for each side.

use std::path::PathBuf;

use tokio::process::Command;

use crate::aws::Aws;
use crate::error::BedError;
use crate::proxy::Proxy;

/// A cluster, and the AWS side that it is in.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Folder of the world.
    pub dir: PathBuf,
    /// Logs of the world; a cluster's are in a folder of its name.
    pub logs: PathBuf,
    /// `AWS_ENDPOINT_URL`.
    pub aws: String,
    pub region: String,
    pub account: String,
    /// Name in EKS.
    pub cluster: String,
    /// The admin's, for people and for the bed. The product never uses it.
    pub kubeconfig: PathBuf,
    pub api_server: String,
    /// The API server's certificate authority, PEM.
    pub ca: PathBuf,
    pub audit_log: PathBuf,
    pub kubectl: PathBuf,
    pub(crate) admin: kube::Config,
}

impl Cluster {
    /// Shell commands and files for a person.
    pub fn how_to_use(&self) -> String {
        let Self { kubeconfig, kubectl, aws, region, logs, audit_log, .. } = self;
        format!(
            "  export KUBECONFIG={}\n  alias kubectl={}\n  export AWS_ENDPOINT_URL={aws} AWS_REGION={region}\n\n  \
             logs           {}\n  audit log      {}\n  the bed's API  {aws}/bed/",
            kubeconfig.display(),
            kubectl.display(),
            logs.display(),
            audit_log.display(),
        )
    }

    /// A client with every right. Made again each time: a client dies with the runtime it was made on, and each test has a
    /// runtime of its own.
    pub fn admin(&self) -> kube::Client {
        kube::Client::try_from(self.admin.clone()).expect("the world was started with this configuration")
    }

    /// The bed's own API of the AWS side. Made again each time, like [`Cluster::admin`].
    pub fn aws_side(&self) -> Aws {
        Aws::new(&self.aws)
    }

    /// A network before the API server, without a delay.
    pub fn proxy(&self) -> Result<Proxy, BedError> {
        let address = self.api_server.trim_start_matches("https://").parse().expect("an address and a port");
        Proxy::start(address).map_err(BedError::io("start a proxy"))
    }

    /// Runs kubectl as the admin.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<(), BedError> {
        let running = || BedError::io(format!("run kubectl {}", arguments.join(" ")));
        let mut command = Command::new(&self.kubectl);
        command.arg(format!("--kubeconfig={}", self.kubeconfig.display())).args(arguments);
        let output = command.env_clear().env("HOME", &self.dir).kill_on_drop(true).output().await.map_err(running())?;
        if output.status.success() {
            return Ok(());
        }
        Err(running()(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())))
    }
}
