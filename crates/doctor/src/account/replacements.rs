//! Checks whether Auto Scaling groups with the tag `spillway:replace` can replace an instance after a notice. Pure.

use spillway_core::replacement::{TAG, is_tagged, obstacles};
use spillway_settings::Settings;

use super::groups::{Group, HookTransition};
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::Replacements;

/// Checks the groups with the tag `spillway:replace`. Returns `None` if the parameter `Replace` is off.
pub(super) fn run_check(groups: &[Group], settings: &Settings) -> Option<Check> {
    if !settings.replace.is_on() {
        return None;
    }
    let (key, value) = TAG;
    let tagged: Vec<_> = groups.iter().filter(|group| is_tagged(&group.tags)).collect();
    if tagged.is_empty() {
        let what = format!("is on, and no Auto Scaling group of these clusters has the tag {key}={value}");
        let to_do = "tag the groups that are to replace instances first, or set Replace to off";
        let finding =
            Finding::new(FindingId::ReplacementOfNoGroup, Severity::Warn, "the parameter Replace", what, to_do);
        let finding = finding.with_command("tools/spillway enroll --all --groups --replace".to_owned());
        return Some(Check::made(ID, "no group replaces instances".to_owned(), vec![finding]));
    }
    let names = tagged.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", ");
    let findings = tagged.into_iter().filter_map(|group| blocked(group, settings)).collect();
    Some(Check::made(ID, format!("groups that replace instances: {names}"), findings))
}

fn blocked(group: &Group, settings: &Settings) -> Option<Finding> {
    let hooks = group.hooks.iter().filter(|hook| hook.transition == HookTransition::Terminating);
    let mut state = group.state.clone();
    state.hooks = hooks.map(|hook| hook.name.clone()).collect();
    let reasons: Vec<_> = obstacles(&state, settings).iter().map(ToString::to_string).collect();
    if reasons.is_empty() {
        return None;
    }
    let what = format!("has the tag, and no instance of it is replaced at its notice: {}", reasons.join("; "));
    let to_do = "change that, or take the tag away";
    let object = format!("Auto Scaling group {}", group.name);
    Some(Finding::new(FindingId::ReplacementRefused, Severity::Warn, object, what, to_do))
}

#[cfg(test)]
mod tests {
    use spillway_core::replacement::GroupState;
    use spillway_core::test_support::{settings, tags};

    use super::*;
    use crate::account::hooks::tests::{group, hook};

    fn found(groups: &[Group], value: &str) -> Option<Vec<(FindingId, String)>> {
        let check = run_check(groups, &settings(&[("SPILLWAY_REPLACE", value)]))?;
        Some(check.findings.into_iter().map(|finding| (finding.id, finding.what)).collect())
    }

    fn tagged(state: GroupState, hooks: &[&str]) -> Group {
        let hooks: Vec<_> = hooks.iter().map(|name| hook(name)).collect();
        let tags = tags(&[TAG]);
        Group { state: GroupState { tags: tags.clone(), ..state }, tags, ..group(&hooks) }
    }

    #[test]
    fn tagged_group_with_an_obstacle_is_found() {
        assert_eq!(found(&[tagged(GroupState::default(), &["spillway"])], "spot"), Some(Vec::new()));
        let suspended = vec!["Launch".to_owned()];
        let state = GroupState { has_warm_pool: true, suspended, rebalances: true, ..GroupState::default() };
        let [(id, what)] = &found(&[tagged(state, &["others"])], "spot").unwrap()[..] else { panic!("one") };
        assert_eq!(*id, FindingId::ReplacementRefused);
        for reason in ["no terminate hook of ours", "a warm pool", "suspended Launch", "rebalances its capacity"] {
            assert!(what.contains(reason), "{what}");
        }
    }

    #[test]
    fn parameter_without_a_tagged_group_is_found() {
        assert_eq!(found(&[group(&[])], "spot").unwrap()[0].0, FindingId::ReplacementOfNoGroup);
        assert_eq!(found(&[group(&[])], "off"), None);
    }
}
