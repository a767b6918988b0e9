//! kube-apiserver: RBAC, the real token webhook, and an audit line for each request.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

use crate::certs;
use crate::error::BedError;
use crate::kubeconfig;
use crate::layout::ClusterLayout;
use crate::setup::own_file;

pub(super) async fn start(cluster: &ClusterLayout<'_>, client: &Client) -> Result<(), BedError> {
    let server = cluster.authority.server("kubernetes")?;
    let certificate = cluster.write("api-server.pem", &server.certificate)?;
    let key = cluster.write("api-server-key.pem", &server.key)?;
    let (signing_key, public_key) = certs::signing_keys()?;
    let signing_key = cluster.write("service-accounts-key.pem", &signing_key)?;
    let public_key = cluster.write("service-accounts.pem", &public_key)?;
    let authenticate = format!("https://127.0.0.1:{}/authenticate", cluster.ports.authenticator);
    let webhook = kubeconfig::text(&authenticate, &cluster.authority.pem(), None);
    let webhook = cluster.write("token-webhook.kubeconfig", &webhook)?;

    let options = cluster.options;
    let program = cluster.program("kube-apiserver").env("GOGC", options.gogc.to_string()).args([
        format!("--etcd-servers=http://127.0.0.1:{}", cluster.ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", cluster.ports.api_server),
        format!("--tls-cert-file={}", certificate.display()),
        format!("--tls-private-key-file={}", key.display()),
        format!("--client-ca-file={}", cluster.path("ca.pem").display()),
        // As on EKS: a request without a token is refused before RBAC.
        "--anonymous-auth=false".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        format!("--authentication-token-webhook-config-file={}", webhook.display()),
        "--authentication-token-webhook-version=v1beta1".to_owned(),
        format!("--authentication-token-webhook-cache-ttl={}s", options.token_cache.as_secs()),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", public_key.display()),
        format!("--service-account-signing-key-file={}", signing_key.display()),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        // Pods run nowhere: they need no token and no endpoint of this server.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--audit-policy-file={}", own_file("control-plane/audit-policy.yaml").display()),
        format!("--audit-log-path={}", audit_log(cluster).display()),
        // Megabytes, more than a world writes: the log is never rotated.
        "--audit-log-maxsize=10000".to_owned(),
    ]);
    let process = cluster.processes.start(program)?;
    let limit = Duration::from_mins(1);
    cluster.processes.until_ready(&process, limit, || ready(client)).await
}

/// In the folder `SPILLWAY_RIGHTS` if set: `tests/rights/cluster.py` reads the log after the world's end.
pub(crate) fn audit_log(cluster: &ClusterLayout<'_>) -> PathBuf {
    match std::env::var_os("SPILLWAY_RIGHTS") {
        Some(folder) => Path::new(&folder).join(format!("{}-{}.audit", cluster.name, std::process::id())),
        None => cluster.logs.join("audit.log"),
    }
}

/// The namespaces come a moment after `readyz`.
async fn ready(client: &Client) -> kube::Result<()> {
    let request = Request::get("/readyz").body(Vec::new()).expect("a path makes a request");
    client.request_text(request).await?;
    Api::<Namespace>::all(client.clone()).get("default").await?;
    Api::<Namespace>::all(client.clone()).get("kube-system").await.map(drop)
}
