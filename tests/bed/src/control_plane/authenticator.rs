//! aws-iam-authenticator: checks the product's tokens as EKS does, and maps its role to its group. In a cluster that is not
//! enrolled, EKS' access entries and aws-auth map roles, by the authentication mode, and the cluster's creator is an admin.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::cloud::Cloud;
use crate::error::BedError;
use crate::kubeconfig;
use crate::layout::{ACCOUNT, ClusterLayout};

/// The function's role, and its group in RBAC.
const ROLE: &str = "spillway-drain";
const GROUP: &str = "spillway";
/// Role that creates and enrolls clusters.
const OPERATOR: &str = "spillway-enroller";

/// Starts the authenticator with a certificate of the cluster's authority, so that the API server need not wait for one.
pub(crate) async fn start(cluster: &ClusterLayout<'_>, cloud: &Cloud) -> Result<(), BedError> {
    let folder = cluster.path("authenticator");
    std::fs::create_dir(&folder).map_err(BedError::io("make the authenticator's folder"))?;
    let server = cluster.authority.server("aws-iam-authenticator")?;
    cluster.write("authenticator/cert.pem", &server.certificate)?;
    cluster.write("authenticator/key.pem", &server.key)?;
    let mut server = json!({
        "partition": "aws",
        "address": "127.0.0.1",
        "hostname": "127.0.0.1",
        "port": cluster.ports.authenticator,
        "stateDir": folder,
        "kubeconfigPregenerated": true,
        "backendMode": ["MountedFile"],
        "mapRoles": [role(ROLE, GROUP)],
    });
    if let Some(mode) = cluster.unprepared {
        server["mapRoles"] = json!([role(OPERATOR, "system:masters")]);
        if mode != "CONFIG_MAP" {
            server["backendMode"] = json!(["MountedFile", "DynamicFile"]);
            server["dynamicfilepath"] = json!(cluster.access_entries);
        }
        if mode != "API" {
            server["backendMode"].as_array_mut().expect("the list above").push(json!("EKSConfigMap"));
            server["kubeconfig"] = json!(own_kubeconfig(cluster)?);
        }
    }
    let config = json!({"clusterID": cluster.name, "server": server});
    let config = cluster.write("authenticator.yaml", &config.to_string())?;
    let program = cluster
        .program("aws-iam-authenticator")
        .args(["server".to_owned(), format!("--config={}", config.display())])
        // The authenticator calls the real STS host through the proxy.
        .env("HTTPS_PROXY", &cloud.proxy)
        .env("SSL_CERT_FILE", &cloud.proxy_ca)
        .env("AWS_EC2_METADATA_DISABLED", "true");
    let process = cluster.processes.start(program)?;
    let connect = || TcpStream::connect(("127.0.0.1", cluster.ports.authenticator));
    cluster.processes.until_ready(&process, Duration::from_secs(30), connect).await.map(drop)
}

/// A mapping with an access entry's default user name.
fn role(name: &str, group: &str) -> Value {
    json!({
        "roleARN": format!("arn:aws:iam::{ACCOUNT}:role/{name}"),
        "username": format!("arn:aws:sts::{{{{AccountID}}}}:assumed-role/{name}/{{{{SessionName}}}}"),
        "groups": [group],
    })
}

/// Kubeconfig with which the authenticator reads aws-auth.
fn own_kubeconfig(cluster: &ClusterLayout<'_>) -> Result<PathBuf, BedError> {
    let identity = cluster.authority.user("aws-iam-authenticator", Some("system:masters"))?;
    let text = kubeconfig::text(&super::url(cluster), &cluster.authority.pem(), Some(&identity));
    cluster.write("authenticator.kubeconfig", &text)
}
