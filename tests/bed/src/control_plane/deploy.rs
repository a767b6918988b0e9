//! What the product wants in a cluster, from the files that its users apply, in the way that they apply them.

use crate::error::BedError;
use crate::setup::project_file;
use crate::site::Site;

pub(super) async fn apply(site: &Site) -> Result<(), BedError> {
    let folder = project_file("deploy")?;
    let program = site.program("kubectl").args([
        format!("--kubeconfig={}", super::admin_kubeconfig(site).display()),
        "apply".to_owned(),
        format!("--filename={}", folder.display()),
    ]);
    site.processes.run(program).await
}
