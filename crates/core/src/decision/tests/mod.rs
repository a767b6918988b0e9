//! Tests: hooks, clusters and notices that the settings leave out.

mod switched;
mod table;

use jiff::SignedDuration;
use spillway_notice::Deadline;

use super::*;
use crate::test_support::{self, instance, settings, tags};

/// Notice with a hook of that name.
fn notice(kind: Kind, hook: &str) -> Notice {
    Notice { hook: Some(test_support::hook(hook)), ..test_support::notice(kind, Deadline::HeldByHook) }
}

fn tagged(pairs: &[(&str, &str)]) -> Instance {
    Instance { tags: tags(pairs), ..instance() }
}

fn why_not_ours(ownership: ClusterOwnership) -> String {
    match ownership {
        ClusterOwnership::NotOurs(reason) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

fn hook(name: &str, variables: &[(&str, &str)]) -> Option<Reason> {
    ignored_by_settings(&notice(Kind::Terminate, name), &settings(variables))
}

#[test]
fn cluster_is_ours_if_clusters_names_it_or_is_empty() {
    let ownership = |tagged: &Instance, clusters| cluster_of(tagged, &settings(&[("SPILLWAY_CLUSTERS", clusters)]));
    let bastion = tagged(&[("Name", "bastion")]);
    assert_eq!(
        why_not_ours(ownership(&bastion, "")),
        "instance i-0123456789abcdef0 has no tag that names an EKS cluster"
    );

    let tagged_prod = tagged(&[("kubernetes.io/cluster/prod", "owned")]);
    for clusters in ["", "stage, prod"] {
        assert_eq!(ownership(&tagged_prod, clusters), ClusterOwnership::Ours(ClusterName::new("prod")), "{clusters}");
    }
    assert_eq!(why_not_ours(ownership(&tagged_prod, "stage")), "cluster prod is not one of those that Clusters names");

    let two = tagged(&[("kubernetes.io/cluster/a", "owned"), ("kubernetes.io/cluster/b", "owned")]);
    assert_eq!(ownership(&two, "b,c"), ClusterOwnership::Ours(ClusterName::new("b")));
    assert_eq!(
        why_not_ours(ownership(&two, "c")),
        "the tags of instance i-0123456789abcdef0 name the clusters a, b, and Clusters names none of them"
    );
    for clusters in ["", "a,b"] {
        let ClusterOwnership::Ambiguous(refusal) = ownership(&two, clusters) else { panic!("{clusters}") };
        assert_eq!(
            refusal.to_string(),
            "the tags of instance i-0123456789abcdef0 name several clusters: a, b; name the cluster in Clusters, or leave one tag"
        );
    }
}

#[test]
fn stopped_instance_needs_the_taint_setting() {
    let stopped = test_support::notice(Kind::Stopped, Deadline::Open);
    assert_eq!(ignored_by_settings(&stopped, &settings(&[])), Some(Reason::NothingLeft));
    assert_eq!(ignored_by_settings(&stopped, &settings(&[("SPILLWAY_TAINTS", "out-of-service")])), None);
}

#[test]
fn node_stands_for_an_instance_that_goes_soon() {
    let may_after = |age_s, kind, deadline, variables: &[(&str, &str)]| {
        let notice = test_support::notice(kind, deadline);
        may_be_identified_by_node(&notice, &settings(variables), notice.time + SignedDuration::from_secs(age_s))
    };
    let may = |kind, deadline, variables: &[(&str, &str)]| may_after(0, kind, deadline, variables);
    let (hard, held) = (Deadline::Hard(Timestamp::UNIX_EPOCH), Deadline::HeldByHook);
    for (kind, deadline) in [(Kind::Spot, hard), (Kind::Terminate, held), (Kind::Stopping, Deadline::Unknown)] {
        assert!(may(kind, deadline, &[]), "{kind:?}");
        assert!(!may(kind, deadline, &[("SPILLWAY_MANAGED_TAG", "drains")]), "{kind:?}");
    }
    assert!(!may(Kind::Terminate, held, &[("SPILLWAY_HOOK_GROUP_TAG", "drains=yes")]), "EC2 knows the group");
    assert!(!may_after(61, Kind::ShuttingDown, Deadline::Unknown, &[]), "it may run again");
    assert!(!may(Kind::Maintenance, hard, &[]), "it begins later");
    assert!(!may(Kind::Rebalance, Deadline::Open, &[]), "it may stay");
    assert!(!may(Kind::Launch, held, &[]), "it comes");
}

#[test]
fn hook_is_ours_if_the_setting_names_it() {
    let not_ours = |name: &str| Some(Reason::NotOurHook(name.to_owned()));
    assert_eq!(hook("spillway", &[]), None);
    assert_eq!(hook("logs", &[]), not_ours("logs"), "another tool's");
    assert_eq!(hook("Terminate-LC-Hook", &[]), not_ours("Terminate-LC-Hook"), "EKS' own");
    assert_eq!(hook("drain", &[("SPILLWAY_HOOKS", "drain,other")]), None);
    assert_eq!(hook("spillway", &[("SPILLWAY_HOOKS", "drain")]), not_ours("spillway"));
}

#[test]
fn returning_node_is_uncordoned_also_with_a_foreign_hook() {
    for kind in [Kind::LaunchFromWarmPool, Kind::RootVolumeReplaced] {
        let decision = |variables: &[(&str, &str)]| {
            let (notice, settings) = (notice(kind, "spillway"), settings(variables));
            let decide = || decide(&notice, &instance(), ManagedBy::SelfManaged, &settings, notice.time);
            ignored_by_settings(&notice, &settings).map_or_else(decide, Decision::Ignore)
        };
        let (no_terminate, launch) = (("SPILLWAY_DRAIN_ON", "spot"), ("SPILLWAY_LAUNCH", "ABANDON"));
        assert_eq!(decision(&[]), Decision::Undo);
        assert_eq!(decision(&[launch]), Decision::AwaitReady);
        assert_eq!(decision(&[launch, ("SPILLWAY_HOOKS", "drain")]), Decision::Undo, "that hook is another's");
        assert_eq!(decision(&[launch, no_terminate]), Decision::AwaitReady, "drained by an earlier setting");
        assert_eq!(decision(&[no_terminate]), Decision::Ignore(Reason::SwitchedOff(Switch::Launch)));
    }
}

#[test]
fn maintenance_is_postponed_but_a_dry_run_shows_the_drain() {
    let starts = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
    let notice = test_support::notice(Kind::Maintenance, Deadline::Hard(starts));
    let decision = |variables: &[(&str, &str)], minutes| {
        let now = starts - SignedDuration::from_mins(minutes);
        let lead = ("SPILLWAY_MAINTENANCE_LEAD_S", "600");
        let settings = settings(&[&[lead], variables].concat());
        decide(&notice, &instance(), ManagedBy::SelfManaged, &settings, now)
    };
    assert_eq!(decision(&[], 60), Decision::Postpone(starts - SignedDuration::from_mins(10)));
    assert_eq!(decision(&[], 10), Decision::Drain);
    assert_eq!(decision(&[("SPILLWAY_DRY_RUN", "true")], 60), Decision::Drain);
}
