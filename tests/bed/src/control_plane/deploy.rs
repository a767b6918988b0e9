//! What the product wants in a cluster, from the files that its users apply, in the way that they apply them: all of
//! them, those too that only a setting needs; without flow control where a world is to be as it is by default.

use std::fs::DirEntry;

use crate::error::BedError;
use crate::layout::ClusterLayout;
use crate::setup::project_file;

pub(super) async fn apply(cluster: &ClusterLayout<'_>) -> Result<(), BedError> {
    let mut files = vec![project_file("deploy")?];
    let optional = project_file("deploy/optional")?.read_dir().and_then(Iterator::collect::<Result<Vec<_>, _>>);
    files.extend(optional.map_err(BedError::io("read deploy/optional"))?.iter().map(DirEntry::path));
    files.retain(|file| cluster.options.flow_control || !file.ends_with("flow-control.yaml"));
    let program = cluster
        .program("kubectl")
        .args([format!("--kubeconfig={}", super::admin_kubeconfig(cluster).display()), "apply".to_owned()])
        .args(files.iter().map(|file| format!("--filename={}", file.display())));
    cluster.processes.run(program).await
}
