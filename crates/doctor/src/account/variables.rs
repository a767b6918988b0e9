//! Checks the names and values of all `SPILLWAY_` environment variables. Pure.

use spillway_settings::Settings;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::Variables;

pub(crate) fn run_check(settings: &Settings) -> Check {
    let finding = |name: &String| {
        let what = "is not a setting of this version and has no effect";
        let to_do = "deploy the template of this version; the changelog lists removed settings";
        Finding::new(FindingId::UnknownVariable, Severity::Warn, format!("the variable {name}"), what, to_do)
    };
    let wrong = settings.wrong.as_ref().map(|wrong| {
        let to_do = "correct the parameter, and deploy the stack";
        let what = format!("are wrong, so that every notice fails: {wrong}");
        Finding::new(FindingId::WrongSetting, Severity::Fail, "the function's settings", what, to_do)
    });
    let findings: Vec<_> = wrong.into_iter().chain(settings.unknown.iter().map(finding)).collect();
    let what = if findings.is_empty() {
        "all variables are settings of this version with accepted values"
    } else {
        "some variables are unknown or have a wrong value"
    };
    Check::made(ID, what, findings)
}

#[cfg(test)]
mod tests {
    use spillway_core::test_support::settings;

    use super::*;

    #[test]
    fn unknown_variable_is_found() {
        assert_eq!(run_check(&settings(&[("SPILLWAY_DRY_RUN", "true")])).findings, []);
        let check = run_check(&settings(&[("SPILLWAY_MARGIN_S", "5"), ("SPILLWAY_DRY_RUN", "true")]));
        let objects: Vec<_> = check.findings.iter().map(|finding| finding.object.as_str()).collect();
        assert_eq!(objects, ["the variable SPILLWAY_MARGIN_S"]);
    }

    #[test]
    fn wrong_setting_is_a_failure() {
        let check = run_check(&settings(&[("SPILLWAY_DRAIN_ON", "sport")]));
        let [finding] = check.findings.as_slice() else { panic!("{:?}", check.findings) };
        assert_eq!((finding.id, finding.severity), (FindingId::WrongSetting, Severity::Fail));
        assert!(finding.what.contains("DrainOn is \"sport\"; it takes some of spot,"), "{}", finding.what);
    }
}
