//! Kubeconfig files.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::certs::Identity;
use crate::error::BedError;

pub(crate) fn text(server: &str, ca: &str, user: Option<&Identity>) -> String {
    let user = user.map_or_else(
        || json!({}),
        |Identity { certificate, key }| {
            json!({
                "client-certificate-data": STANDARD.encode(certificate),
                "client-key-data": STANDARD.encode(key),
            })
        },
    );
    // JSON is YAML.
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "bed",
            "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(ca)},
        }],
        "users": [{"name": "bed", "user": user}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "bed"}}],
        "current-context": "bed",
    })
    .to_string()
}

pub(crate) async fn read(path: &Path) -> Result<kube::Config, BedError> {
    let reading = || BedError::kubernetes(format!("read {}", path.display()));
    let kubeconfig = Kubeconfig::read_from(path).map_err(reading())?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(reading())?;
    // kube would hide a 429 behind minutes of its own retries.
    config.default_retry = false;
    Ok(config)
}
