//! All settings together, a line for each: durations, lists, words, a tag. Printed, they are the same settings; what is refused is
//! named with its setting.

use std::time::Duration;

use spillway_receipt::LifecycleResult;
use spillway_settings::{
    KarpenterNodes, LoadBalancers, ManagedNodeGroups, NodeEvents, NoticeFamily, Settings, TaintNames,
};

use crate::{Form, Target};

pub(super) const TARGET: Target = Target {
    name: "settings",
    form: Form::Text,
    seeds: || {
        let written = [
            "DRAIN_ON=rebalance,spot\nCORDON_ON=terminate, state-change\nLAUNCH=CONTINUE",
            "DRAIN_ON=none\nCORDON_ON=capacity,maintenance\nSTRANDED_HOOKS=ABANDON\nHOOKS=drain,a/b",
            "MANAGED_NODE_GROUPS=leave\nKARPENTER=nodeclaim\nCLUSTERS=prod, stage\nMANAGED_TAG=team=shop",
            "HOOK_MAX_WAIT_S=60\nVOLUME_WAIT_S=0\nREBALANCE_WINDOW_S=172800\nMAINTENANCE_LEAD_S=+10",
            "TAINTS=out-of-service,nth\nLOAD_BALANCERS=wait\nNODE_EVENTS=nth\nDRY_RUN=true\nSTACK=spillway-1",
            "MANAGED_NODE_GROUPS=gaps\nTAINTS=spillway\nLOAD_BALANCERS=exclude\nNODE_EVENTS=none\nLAUNCH=ignore\nNEWS=1",
            "SCHEDULES=spillway arn:aws:iam::123456789012:role/s arn:aws:sqs:us-east-1:123456789012:failures",
            "HOOK_MAX_WAIT_S=59\nVOLUME_WAIT_S=3601\nREBALANCE_WINDOW_S=-1\nMAINTENANCE_LEAD_S=18446744073709551616",
        ];
        written.map(str::to_owned).into()
    },
    examine: |input| {
        let Ok(text) = str::from_utf8(input) else { return };
        let mut names = Vec::new();
        let variables = text.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| {
            names.push(format!("SPILLWAY_{name}"));
            (format!("SPILLWAY_{name}"), value.to_owned())
        });
        match Settings::from_variables(variables) {
            Ok(settings) => {
                let again = Settings::from_variables(printed(&settings).into_iter()).expect("what we print we read");
                assert_eq!(again, Settings { unknown: Vec::new(), ..settings });
            }
            Err(error) => {
                let told = error.to_string();
                assert!(names.iter().any(|name| told.contains(name)), "{told}");
            }
        }
    },
};

/// The settings as variables.
fn printed(settings: &Settings) -> Vec<(String, String)> {
    let Settings {
        drain_on,
        cordon_on,
        launch,
        managed_node_groups,
        karpenter,
        clusters,
        managed_tag,
        node_selector,
        hooks,
        hook_group_tag,
        stranded_hooks,
        hook_max_wait,
        volume_wait,
        rebalance_window,
        maintenance_lead,
        taints,
        load_balancers,
        node_events,
        dry_run,
        schedules,
        stack,
        unknown: _,
    } = settings;
    let schedules =
        schedules.as_ref().map(|to| format!("{} {} {}", to.group, to.role_arn, to.failures_arn)).unwrap_or_default();
    let variables = [
        ("DRAIN_ON", families(drain_on)),
        ("CORDON_ON", families(cordon_on)),
        ("LAUNCH", launch.map_or("ignore", LifecycleResult::as_str).to_owned()),
        ("MANAGED_NODE_GROUPS", node_groups(*managed_node_groups).to_owned()),
        ("KARPENTER", if *karpenter == KarpenterNodes::Leave { "leave" } else { "nodeclaim" }.to_owned()),
        ("CLUSTERS", clusters.join(",")),
        ("MANAGED_TAG", managed_tag.iter().map(ToString::to_string).collect()),
        ("NODE_SELECTOR", node_selector.to_string()),
        // Nothing would be the default.
        ("HOOKS", if hooks.is_empty() { " ".to_owned() } else { hooks.join(",") }),
        ("HOOK_GROUP_TAG", hook_group_tag.iter().map(ToString::to_string).collect()),
        ("STRANDED_HOOKS", stranded_hooks.map_or("leave", LifecycleResult::as_str).to_owned()),
        ("HOOK_MAX_WAIT_S", seconds(*hook_max_wait)),
        ("VOLUME_WAIT_S", seconds(*volume_wait)),
        ("REBALANCE_WINDOW_S", seconds(*rebalance_window)),
        ("MAINTENANCE_LEAD_S", seconds(*maintenance_lead)),
        ("TAINTS", taint_words(taints.of_claim, taints.out_of_service)),
        ("LOAD_BALANCERS", balancers(*load_balancers).to_owned()),
        ("NODE_EVENTS", events(*node_events).to_owned()),
        ("DRY_RUN", dry_run.to_string()),
        ("SCHEDULES", schedules),
        ("STACK", stack.clone()),
    ];
    variables.map(|(name, value)| (format!("SPILLWAY_{name}"), value)).into()
}

fn families(families: &[NoticeFamily]) -> String {
    let words: Vec<_> = families.iter().map(|family| family.as_str()).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(",") }
}

fn seconds(duration: Duration) -> String {
    duration.as_secs().to_string()
}

fn node_groups(setting: ManagedNodeGroups) -> &'static str {
    match setting {
        ManagedNodeGroups::Gaps => "gaps",
        ManagedNodeGroups::Leave => "leave",
        ManagedNodeGroups::Drain => "drain",
    }
}

fn taint_words(of_claim: Option<TaintNames>, out_of_service: bool) -> String {
    let of_claim = of_claim.map(|names| if names == TaintNames::Nth { "nth" } else { "spillway" });
    let words: Vec<_> = of_claim.into_iter().chain(out_of_service.then_some("out-of-service")).collect();
    words.join(",")
}

fn balancers(setting: LoadBalancers) -> &'static str {
    match setting {
        LoadBalancers::Leave => "leave",
        LoadBalancers::Exclude => "exclude",
        LoadBalancers::Wait => "wait",
    }
}

fn events(setting: Option<NodeEvents>) -> &'static str {
    match setting {
        None => "none",
        Some(NodeEvents::Spillway) => "spillway",
        Some(NodeEvents::Nth) => "nth",
    }
}
