//! What the product wants in a cluster, from the files that its users apply, in the way that they apply them.

use crate::error::BedError;
use crate::setup::project_file;
use crate::site::ClusterSite;

pub(super) async fn apply(cluster: &ClusterSite<'_>) -> Result<(), BedError> {
    let folder = project_file("deploy")?;
    let program = cluster.program("kubectl").args([
        format!("--kubeconfig={}", super::admin_kubeconfig(cluster).display()),
        "apply".to_owned(),
        format!("--filename={}", folder.display()),
    ]);
    cluster.processes.run(program).await
}
