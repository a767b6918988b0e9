//! The product's rights, from the file that its users apply, in the way that they apply it.

use crate::error::BedError;
use crate::setup::project_file;
use crate::site::Site;

pub(super) async fn apply(site: &Site) -> Result<(), BedError> {
    let rights = project_file("deploy/rbac.yaml")?;
    let program = site.program("kubectl").args([
        format!("--kubeconfig={}", super::admin_kubeconfig(site).display()),
        "apply".to_owned(),
        format!("--filename={}", rights.display()),
    ]);
    site.processes.run(program).await
}
