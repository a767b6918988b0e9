//! What the product wants in a cluster, from the files that its users apply, in the way that they apply them: all of
//! them, those too that only a setting needs.

use crate::error::BedError;
use crate::layout::ClusterLayout;
use crate::setup::project_file;

pub(super) async fn apply(cluster: &ClusterLayout<'_>) -> Result<(), BedError> {
    let program = cluster.program("kubectl").args([
        format!("--kubeconfig={}", super::admin_kubeconfig(cluster).display()),
        "apply".to_owned(),
        format!("--filename={}", project_file("deploy")?.display()),
        format!("--filename={}", project_file("deploy/optional")?.display()),
    ]);
    cluster.processes.run(program).await
}
