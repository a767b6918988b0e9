//! aws-iam-authenticator: checks the product's tokens as EKS does, and maps its role to its group.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpStream;

use crate::cloud::Cloud;
use crate::error::BedError;
use crate::layout::{ACCOUNT, ClusterLayout};

/// The role that the product's function has, and the group that RBAC knows it by.
const ROLE: &str = "spillway-drain";
const GROUP: &str = "spillway";

/// Ours, so that the API server need not wait for it: the authenticator takes the certificate that
/// it finds in its folder.
pub(crate) async fn start(cluster: &ClusterLayout<'_>, cloud: &Cloud) -> Result<(), BedError> {
    let folder = cluster.path("authenticator");
    std::fs::create_dir(&folder).map_err(BedError::io("make the authenticator's folder"))?;
    let server = cluster.authority.server("aws-iam-authenticator")?;
    cluster.write("authenticator/cert.pem", &server.certificate)?;
    cluster.write("authenticator/key.pem", &server.key)?;
    let config = json!({
        "clusterID": cluster.name,
        "server": {
            "partition": "aws",
            "address": "127.0.0.1",
            "hostname": "127.0.0.1",
            "port": cluster.ports.authenticator,
            "stateDir": folder,
            "kubeconfigPregenerated": true,
            "backendMode": ["MountedFile"],
            "mapRoles": [{
                "roleARN": format!("arn:aws:iam::{ACCOUNT}:role/{ROLE}"),
                // The user name that an access entry gives by default.
                "username": format!("arn:aws:sts::{{{{AccountID}}}}:assumed-role/{ROLE}/{{{{SessionName}}}}"),
                "groups": [GROUP],
            }],
        },
    });
    let config = cluster.write("authenticator.yaml", &config.to_string())?;
    let program = cluster
        .program("aws-iam-authenticator")
        .args(["server".to_owned(), format!("--config={}", config.display())])
        // It asks the real STS host; the proxy stands in for it.
        .env("HTTPS_PROXY", &cloud.proxy)
        .env("SSL_CERT_FILE", &cloud.proxy_ca)
        .env("AWS_EC2_METADATA_DISABLED", "true");
    let process = cluster.processes.start(program)?;
    let connect = || TcpStream::connect(("127.0.0.1", cluster.ports.authenticator));
    cluster.processes.until_ready(&process, Duration::from_secs(30), connect).await.map(drop)
}
