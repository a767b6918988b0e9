//! The controller manager, the scheduler, and kwok in the place of kubelets.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};

use crate::error::BedError;
use crate::kubeconfig;
use crate::layout::ClusterLayout;
use crate::setup::own_file;

pub(super) async fn start(cluster: &ClusterLayout<'_>, client: &Client) -> Result<(), BedError> {
    let login = |user: &str, group| -> Result<PathBuf, BedError> {
        let identity = cluster.authority.user(user, group)?;
        let text = kubeconfig::text(&super::url(cluster), &cluster.authority.pem(), Some(&identity));
        cluster.write(&format!("{}.kubeconfig", user.replace(':', "-")), &text)
    };

    let program = |name| cluster.program(name).nice(cluster.options.controllers_nice);

    let kubeconfig = login("system:kube-scheduler", None)?;
    cluster.processes.start(program("kube-scheduler").args([
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]))?;

    let kubeconfig = login("kwok", Some("system:masters"))?;
    cluster.processes.start(program("kwok").args([
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--config={}", own_file("control-plane/kwok.yaml").display()),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        "--node-lease-duration-seconds=40".to_owned(),
    ]))?;

    let kubeconfig = login("system:kube-controller-manager", None)?;
    let controllers = cluster.processes.start(program("kube-controller-manager").args([
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        // Without it the controllers lack their rights.
        "--use-service-account-credentials=true".to_owned(),
        // A busy machine must not make nodes NotReady.
        "--node-monitor-grace-period=10m".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]))?;
    // The controller manager's first visible work.
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
    let limit = Duration::from_mins(1);
    cluster.processes.until_ready(&controllers, limit, || accounts.get("default")).await.map(drop)
}
