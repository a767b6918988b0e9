//! Whether every variable with our prefix is known to this version and has an accepted value. Pure.

use spillway_settings::Settings;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::Variables;

pub(crate) fn look(settings: &Settings) -> Check {
    let finding = |name: &String| {
        let what = "is no setting of this version, and changes nothing";
        let to_do = "deploy the template that came with this version; the changelog names each setting that has gone";
        Finding::new(FindingId::UnknownVariable, Severity::Warn, format!("the variable {name}"), what, to_do)
    };
    let wrong = settings.wrong.as_ref().map(|wrong| {
        let to_do = "correct the parameter, and deploy the stack";
        let what = format!("are wrong, and every notice fails: {wrong}");
        Finding::new(FindingId::WrongSetting, Severity::Fail, "the function's settings", what, to_do)
    });
    let findings: Vec<_> = wrong.into_iter().chain(settings.unknown.iter().map(finding)).collect();
    let what = if findings.is_empty() {
        "every variable is a setting of this version, with an accepted value"
    } else {
        "some variables are no settings of this version, or have a value that is not accepted"
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

    #[test]
    fn wrong_setting_is_a_failure_that_names_it() {
        let check = look(&settings(&[("SPILLWAY_DRAIN_ON", "sport")]));
        let [finding] = check.findings.as_slice() else { panic!("{:?}", check.findings) };
        assert_eq!((finding.id, finding.severity), (FindingId::WrongSetting, Severity::Fail));
        assert!(finding.what.contains("DrainOn is \"sport\"; it takes some of spot,"), "{}", finding.what);
    }
}
