//! Whether every variable with our prefix is one that this version knows. Pure.

use spillway_settings::Settings;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::Variables;

/// The check of the function's environment.
pub(super) fn look(settings: &Settings) -> Check {
    let finding = |name: &String| {
        let what = "is no setting of this version, and changes nothing";
        let to_do = "deploy the template that came with this version; the changelog names each setting that has gone";
        Finding::new(FindingId::UnknownVariable, Severity::Warn, format!("the variable {name}"), what, to_do)
    };
    let findings: Vec<_> = settings.unknown.iter().map(finding).collect();
    let what = if findings.is_empty() {
        "every variable is a setting of this version"
    } else {
        "some variables are no settings of this version"
    };
    Check::made(ID, what, findings)
}

#[cfg(test)]
mod tests {
    use spillway_core::test_support::settings;

    use super::*;

    #[test]
    fn a_variable_of_another_version_is_found_by_its_name() {
        assert_eq!(look(&settings(&[("SPILLWAY_DRY_RUN", "true")])).findings, []);
        let check = look(&settings(&[("SPILLWAY_MARGIN_S", "5"), ("SPILLWAY_DRY_RUN", "true")]));
        let objects: Vec<_> = check.findings.iter().map(|finding| finding.object.as_str()).collect();
        assert_eq!(objects, ["the variable SPILLWAY_MARGIN_S"]);
    }
}
