//! Each condition of a replacement alone, and the deadline of a joined claim.

use spillway_notice::{Deadline, Maintenance};

use super::*;
use crate::test_support::{self, at, instance, settings, tags};

const ON: (&str, &str) = ("SPILLWAY_REPLACE", "spot,maintenance");
const NOW: &str = "1970-01-01T00:00:01Z";
const UNTIL: &str = "1970-01-01T00:02:00Z";

fn spot() -> Notice {
    test_support::notice(Kind::Spot, Deadline::Hard(at(UNTIL)))
}

fn maintenance(reboots: bool) -> Notice {
    let maintenance = Maintenance { id: "m-1".to_owned(), reboots, starts: None };
    Notice { maintenance: Some(maintenance), ..test_support::notice(Kind::Maintenance, Deadline::Open) }
}

fn tagged() -> Instance {
    Instance { tags: tags(&[TAG]), spot_request: Some("sir-1".to_owned()), ..instance() }
}

fn claim(how: ClaimResult, holder: &str) -> Claim {
    let (node, holder) = ("n-1".to_owned(), holder.to_owned());
    let until = Some(at(UNTIL));
    Claim { node, provider_id: String::new(), how, holder, labels: BTreeMap::new(), cordoned: None, until }
}

fn joined(kind: Kind, event: &str, holder: &str) -> Claim {
    claim(ClaimResult::Joined { notice: kind.as_str().to_owned(), event: event.to_owned() }, holder)
}

fn group() -> GroupState {
    GroupState {
        tags: tags(&[TAG]),
        hooks: vec!["others".to_owned(), "spillway".to_owned()],
        instance: Some("InService".to_owned()),
        suspended: vec!["AZRebalance".to_owned()],
        desired: 40,
        replaced: 19,
        ..GroupState::default()
    }
}

#[test]
fn notice_takes_part_by_setting_and_tag() {
    let takes_part = |notice: &Notice, instance: &Instance, value| {
        super::takes_part(notice, instance, &settings(&[("SPILLWAY_REPLACE", value)]))
    };
    assert!(takes_part(&spot(), &tagged(), "spot") && takes_part(&maintenance(false), &tagged(), "spot,maintenance"));
    assert!(!takes_part(&spot(), &tagged(), "off") && !takes_part(&maintenance(false), &tagged(), "spot"));
    assert!(!takes_part(&maintenance(true), &tagged(), "spot,maintenance"), "the instance comes back by its reboot");
    let other_value = Instance { tags: tags(&[(TAG.0, "false")]), ..instance() };
    assert!(!takes_part(&spot(), &instance(), "spot") && !takes_part(&spot(), &other_value, "spot"));
    for kind in Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Spot | Kind::Maintenance)) {
        let notice = test_support::notice(kind, Deadline::Open);
        assert!(!takes_part(&notice, &tagged(), "spot,maintenance"), "{kind:?}");
    }
}

#[test]
fn settings_claim_and_owner_are_checked_before_any_call() {
    let (ours, instance) = (claim(ClaimResult::First, "e-1"), tagged());
    let on_demand = Instance { spot_request: None, ..tagged() };
    let checked = |variables: &[(&str, &str)], instance: &Instance, managed_by, claim: &Claim| {
        before_calls(&spot(), instance, managed_by, claim, &settings(&[variables, &[ON]].concat()))
    };
    let with = |variables: &[(&str, &str)]| checked(variables, &instance, ManagedBy::SelfManaged, &ours);
    let by = |claim: &Claim| checked(&[], &instance, ManagedBy::SelfManaged, claim);
    assert_eq!(with(&[]), Ok(()));
    assert_eq!(with(&[("SPILLWAY_DRY_RUN", "true")]), Err(NotRequested::NotDrained));
    let cordons = [("SPILLWAY_DRAIN_ON", "terminate"), ("SPILLWAY_CORDON_ON", "spot")];
    assert_eq!(with(&cordons), Err(NotRequested::NotDrained));
    assert_eq!(with(&[("SPILLWAY_DRAIN_ON", "spot")]), Err(NotRequested::HooksNotHandled));
    assert_eq!(checked(&[], &instance, ManagedBy::ManagedNodeGroup, &ours), Err(NotRequested::ManagedByEks));
    assert_eq!(checked(&[], &on_demand, ManagedBy::SelfManaged, &ours), Err(NotRequested::NoSpotRequest));
    for held in [
        claim(ClaimResult::Again, "e-1"),
        claim(ClaimResult::CordonedByOthers, "e-1"),
        joined(Kind::Rebalance, "e-0", "e-1"),
    ] {
        assert_eq!(by(&held), Ok(()), "{held:?}");
    }
    let denied = claim(ClaimResult::Denied(Box::new(kube_core::Status::failure("no", "Forbidden"))), "");
    for other in [joined(Kind::Spot, "e-1", "e-1"), joined(Kind::Terminate, "e-0", "e-0"), denied] {
        assert_eq!(by(&other), Err(NotRequested::NoClaim), "{other:?}");
    }
}

#[test]
fn group_must_be_able_to_hold_and_to_launch() {
    let settings = settings(&[ON, ("SPILLWAY_HOOK_GROUP_TAG", "team=shop")]);
    let sane = GroupState { tags: tags(&[TAG, ("team", "shop")]), ..group() };
    assert_eq!(of_group(&sane, &settings), Ok(()));
    let state = |state: &str| GroupState { instance: Some(state.to_owned()), ..sane.clone() };
    let suspended = ["Terminate", "Launch"].map(str::to_owned).to_vec();
    for (wrong, refused) in [
        (GroupState { tags: tags(&[("team", "shop")]), ..sane.clone() }, "lacks the tag spillway:replace=true"),
        (group(), "lacks the tag team=shop, without which IAM denies"),
        (GroupState { hooks: vec!["others".to_owned()], ..sane.clone() }, "has no terminate hook of ours"),
        (state("Terminating:Wait"), "is Terminating:Wait in its group"),
        (state("Standby"), "is Standby in its group"),
        (GroupState { instance: None, ..sane.clone() }, "is not known in its group"),
        (GroupState { has_warm_pool: true, ..sane.clone() }, "has a warm pool"),
        (GroupState { suspended, ..sane.clone() }, "has suspended Launch and Terminate"),
        (GroupState { rebalances: true, ..sane.clone() }, "rebalances its capacity"),
        (GroupState { replaced: 20, ..sane.clone() }, "replaced 20 instances in the last hour, and 20 is the limit"),
    ] {
        let reason = of_group(&wrong, &settings).unwrap_err().to_string();
        assert!(reason.contains(refused), "{reason}");
    }
    assert_eq!([0, 9, 11, 12].map(limit), [5, 5, 5, 6]);
}

#[test]
fn record_of_ec2_must_name_the_interruption_or_the_end() {
    let spot = |status: &str, updated: &str| {
        confirmed(&spot(), Confirmation::SpotRequest { status: status.to_owned(), updated: at(updated) }).is_ok()
    };
    for status in ["marked-for-termination", "instance-terminated-no-capacity", "instance-terminated-by-price"] {
        assert!(spot(status, "1969-12-31T23:55:00Z") && spot(status, "1970-01-01T00:05:00Z"), "{status}");
        assert!(!spot(status, "1969-12-31T23:54:59Z") && !spot(status, "1970-01-01T00:05:01Z"), "{status}");
    }
    for other in
        ["fulfilled", "marked-for-stop", "instance-terminated-by-user", "request-canceled-and-instance-running"]
    {
        assert!(!spot(other, NOW), "{other}");
    }
    let scheduled = |codes: &[&str]| {
        let codes = codes.iter().map(|code| (*code).to_owned()).collect();
        confirmed(&maintenance(false), Confirmation::ScheduledEvents(codes)).is_ok()
    };
    assert!(scheduled(&["system-reboot", "instance-retirement"]) && scheduled(&["instance-stop"]));
    assert!(!scheduled(&[]) && !scheduled(&["instance-reboot", "system-reboot", "system-maintenance"]));
}

#[test]
fn hook_takes_the_deadline_of_a_spot_claim_before_it_has_passed() {
    let hook = test_support::notice(Kind::Terminate, Deadline::HeldByHook);
    let spots = joined(Kind::Spot, "e-0", "e-1");
    let of = |notice: &Notice, instance: &Instance, claim: &Claim, now: &str, variables: &[(&str, &str)]| {
        deadline_of_claim(notice, instance, claim, &settings(variables), at(now))
    };
    assert_eq!(of(&hook, &tagged(), &spots, NOW, &[ON]), Some(at(UNTIL)));
    assert_eq!(of(&hook, &tagged(), &spots, UNTIL, &[ON]), None);
    assert_eq!(of(&hook, &tagged(), &spots, NOW, &[]), None);
    assert_eq!(of(&hook, &instance(), &spots, NOW, &[ON]), None, "the group takes no part");
    assert_eq!(of(&hook, &tagged(), &joined(Kind::Maintenance, "e-0", "e-1"), NOW, &[ON]), None);
    assert_eq!(of(&spot(), &tagged(), &spots, NOW, &[ON]), None);
}
