//! Checks the parameter `DryRun`. Pure.

use spillway_settings::Settings;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::DryRun;

pub(super) fn run_check(settings: &Settings) -> Check {
    if !settings.dry_run {
        return Check::made(ID, "Spillway acts on notices", Vec::new());
    }
    let what = "is true, so that Spillway changes nothing: no node is cordoned, no pod is evicted, and each lifecycle hook runs \
                to its timeout";
    let to_do = "deploy with DryRun=false once the receipts show the drains that you want; keep your current drainer until then";
    let finding = Finding::new(FindingId::DryRun, Severity::Fail, "the parameter DryRun", what, to_do);
    Check::made(ID, "Spillway only reports what it would do", vec![finding])
}
