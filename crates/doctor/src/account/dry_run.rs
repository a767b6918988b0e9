//! Whether the function acts on notices, or only says what it would have done. Pure.

use spillway_settings::Settings;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::DryRun;

pub(super) fn look(settings: &Settings) -> Check {
    if !settings.dry_run {
        return Check::made(ID, "Spillway acts on notices", Vec::new());
    }
    let what = "is true, so that Spillway touches nothing: no node is cordoned, no pod is moved, and each lifecycle hook runs \
                to its timeout";
    let to_do = "deploy with DryRun=false once the receipts say what you want; until then leave your nodes to whoever \
                 drains them today";
    let finding = Finding::new(FindingId::DryRun, Severity::Fail, "the parameter DryRun", what, to_do);
    Check::made(ID, "Spillway only says what it would do", vec![finding])
}
