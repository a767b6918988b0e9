//! AWS Health events as they come, of every form that AWS documents.
use serde_json::{Value, json};

use super::super::tests::{continuation, home, notice, refused, sample, unhandled};
use super::super::{Deadline, Incoming, Instances, Kind, NoticeError, read};

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut event = sample("health-scheduled-maintenance");
    event["detail"][field] = value.into();
    event
}

/// The instances that an event of several names, and its kind.
fn several(event: Value) -> (Kind, Vec<String>) {
    match read(event, &home()).unwrap() {
        Incoming::Several(several) => match several.instances {
            Instances::Named(named) => (several.kind, named.into_keys().collect()),
            other @ Instances::OfReservation(_) => panic!("{other:?}"),
        },
        other => panic!("not of several: {other:?}"),
    }
}

fn starts(event: Value) -> String {
    let Deadline::Hard(at) = notice(event).deadline else { panic!("no hard deadline") };
    at.to_string()
}

#[test]
fn the_instance_goes_when_the_change_starts() {
    let read = notice(sample("health-scheduled-maintenance"));
    assert_eq!((read.kind, read.instance.as_str()), (Kind::Maintenance, "i-1234567890abcdef0"));
    assert_eq!(read.deadline, Deadline::Hard("2026-12-05T13:19:03Z".parse().unwrap()));
    let maintenance = read.maintenance.unwrap();
    assert_eq!(maintenance.id, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED_90353408594353983");
    assert!(!maintenance.reboots);
}

#[test]
fn the_older_form_and_the_newer_mean_the_same() {
    let older = notice(sample("health-scheduled-maintenance-older-form"));
    assert_eq!((older.kind, older.instance.as_str()), (Kind::Maintenance, "i-1234567890abcdef0"));
    assert_eq!(older.maintenance.unwrap().id, "AWS_EC2_INSTANCE_STOP_SCHEDULED_90353408594353980");
    assert_eq!(older.deadline, Deadline::Hard("2026-12-05T05:01:10Z".parse().unwrap()));
}

#[test]
fn a_reboot_is_told_from_what_ends_the_instance() {
    let reboots = |code: &str| notice(with("eventTypeCode", code)).maintenance.unwrap().reboots;
    assert!(notice(sample("health-scheduled-reboot")).maintenance.unwrap().reboots);
    assert!(reboots("AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"));
    assert!(!reboots("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"));
    assert!(!reboots("AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED"));
}

#[test]
fn every_affected_instance_is_meant_once_and_each_page_has_its_own() {
    let (kind, first) = several(sample("health-scheduled-maintenance-page-1"));
    assert_eq!(kind, Kind::Maintenance);
    let all = ["i-1234567890abcdef0", "i-1234567890abcdef1", "i-1234567890abcdef9", "i-abcd1111"];
    assert_eq!(first, all, "one is resolved, and has to know it");
    assert_eq!(notice(sample("health-scheduled-maintenance-page-2")).instance.as_str(), "i-1234567890abcdef2");
}

#[test]
fn when_it_is_closed_it_is_over_for_all_its_instances() {
    let over = notice(sample("health-scheduled-maintenance-closed"));
    assert_eq!((over.kind, over.deadline), (Kind::MaintenanceOver, Deadline::Open));
    let announced = notice(sample("health-scheduled-maintenance"));
    assert_eq!((&over.instance, over.maintenance), (&announced.instance, announced.maintenance), "it names the same");

    let mut event = sample("health-scheduled-maintenance-page-1");
    event["detail"]["statusCode"] = "closed".into();
    for entity in event["detail"]["affectedEntities"].as_array_mut().unwrap() {
        entity["status"] = "RESOLVED".into();
    }
    let (kind, instances) = several(event);
    assert_eq!((kind, instances.len()), (Kind::MaintenanceOver, 4));
}

/// The notices that the instances of an event of several get.
fn continued(event: Value) -> Vec<Value> {
    let Incoming::Several(several) = read(event, &home()).unwrap() else { panic!("not of several") };
    let Instances::Named(named) = &several.instances else { panic!("not named") };
    let histories = named.iter().map(|(id, entry)| several.history.for_entry(id, entry));
    histories.map(|history| continuation(&history)).collect()
}

#[test]
fn what_is_open_may_be_over_for_some() {
    let resolved = |id: &str| json!({"entityValue": id, "status": "RESOLVED"});
    let one = notice(with("affectedEntities", json!([resolved("i-1234567890abcdef0")])));
    assert_eq!((one.kind, one.deadline), (Kind::MaintenanceOver, Deadline::Open));

    let affected = json!({"entityValue": "i-1234567890abcdef1", "status": "PENDING"});
    let each = continued(with("affectedEntities", json!([resolved("i-1234567890abcdef0"), affected])));
    let kinds: Vec<_> = each.into_iter().map(notice).map(|read| (read.instance.to_string(), read.kind)).collect();
    let [over, announced] = [("0", Kind::MaintenanceOver), ("1", Kind::Maintenance)];
    assert_eq!(kinds, [over, announced].map(|(n, kind)| (format!("i-1234567890abcdef{n}"), kind)));
}

#[test]
fn an_upcoming_change_is_one() {
    assert_eq!(notice(with("statusCode", "upcoming")).kind, Kind::Maintenance);
    assert_eq!(unhandled(with("statusCode", "postponed")), "Spillway does not know the statusCode \"postponed\"");
}

#[test]
fn what_is_no_scheduled_change_of_an_instance_here_is_not_handled() {
    for (field, given, handled) in [
        ("service", "RDS", "EC2"),
        ("eventTypeCategory", "issue", "scheduledChange"),
        ("eventTypeCategory", "accountNotification", "scheduledChange"),
        ("eventTypeCategory", "investigation", "scheduledChange"),
        ("eventScopeCode", "PUBLIC", "ACCOUNT_SPECIFIC"),
        ("backupEvent", "true", "false"),
        ("eventRegion", "us-west-2", "us-east-1"),
        ("affectedAccount", "999999999999", "123456789012"),
    ] {
        let why = format!("the {field} of this AWS Health event is {given:?}, and Spillway handles {handled:?}");
        assert_eq!(unhandled(with(field, given)), why);
    }
    let why = "\"AWS_EC2_PLANNED_LIFECYCLE_EVENT\" takes no instance away";
    assert_eq!(unhandled(with("eventTypeCode", "AWS_EC2_PLANNED_LIFECYCLE_EVENT")), why);
}

#[test]
fn the_copy_that_a_backup_region_gets_is_ignored_there_and_not_refused() {
    let mut copy = with("backupEvent", "true");
    copy["region"] = "us-west-2".into();
    assert!(unhandled(copy).starts_with("the backupEvent of this AWS Health event is \"true\""));
    // Without that field, its Region tells.
    let mut copy = with("backupEvent", Value::Null);
    copy["region"] = "us-west-2".into();
    assert!(unhandled(copy).starts_with("the eventRegion of this AWS Health event is \"us-east-1\""));
    // An event of another Region that a rule has routed here is refused, as every notice is.
    let mut routed = with("eventRegion", "us-west-2");
    routed["region"] = "us-west-2".into();
    assert!(matches!(read(routed, &home()), Err(NoticeError::Foreign { .. })));
}

#[test]
fn what_is_no_instance_is_passed_over() {
    let event = with(
        "affectedEntities",
        json!([
            {"entityValue": "vol-1234567890abcdef0", "status": "PENDING"},
            {"entityValue": "i-1234567890abcdef0", "status": "UNKNOWN"},
        ]),
    );
    assert_eq!(notice(event).instance.as_str(), "i-1234567890abcdef0");
    let list = json!([{"entityValue": "i-1234567890abcdef0"}, ["i-1234567890abcdef1", "PENDING"]]);
    let why = "cannot read the notice: at detail.affectedEntities[1]: it is no JSON object";
    assert_eq!(refused(with("affectedEntities", list)), why);
    let nothing = "it names no instance";
    for entities in [json!([]), Value::Null, json!([{"entityValue": "vol-1"}])] {
        assert_eq!(unhandled(with("affectedEntities", entities)), nothing);
    }
}

#[test]
fn what_begins_like_an_instance_and_is_none_fails_by_itself() {
    let why = "cannot read the notice: at detail.affectedEntities[].entityValue: \"i-123\" is no instance id";
    assert_eq!(refused(with("affectedEntities", json!([{"entityValue": "i-123"}]))), why);
    // Among others it is handed on like them, and the others go on.
    let entities = json!([{"entityValue": "i-123"}, {"entityValue": "i-1234567890abcdef0"}]);
    assert_eq!(several(with("affectedEntities", entities.clone())).1, ["i-123", "i-1234567890abcdef0"]);
    let each = continued(with("affectedEntities", entities));
    assert_eq!(refused(each[0].clone()), "cannot read the notice: at instance: \"i-123\" is no instance id");
    assert_eq!(notice(each[1].clone()).instance.as_str(), "i-1234567890abcdef0");
    assert!(!each[1].to_string().contains("i-123\""), "each gets its own entry of the list alone");
}

#[test]
fn its_date_is_read_in_every_form_and_named_when_it_is_none() {
    assert_eq!(starts(with("startTime", "Sun, 6 Dec 2026 05:01:10 GMT")), "2026-12-06T05:01:10Z");
    assert_eq!(starts(with("startTime", "2026-12-06T05:01:10Z")), "2026-12-06T05:01:10Z");
    let place = "cannot read the notice: at detail.startTime";
    assert_eq!(refused(with("startTime", "some day")), format!("{place}: \"some day\" is no date"));
    assert_eq!(refused(with("startTime", Value::Null)), format!("{place}: it is missing"));
    // When it is over, it is not asked for.
    let mut closed = sample("health-scheduled-maintenance-closed");
    closed["detail"].as_object_mut().unwrap().remove("startTime");
    notice(closed);
}

#[test]
fn an_event_without_a_name_is_not_taken_for_another() {
    for arn in ["", "arn:aws:health:us-east-1::event", "arn:aws:health:us-east-1::event/"] {
        let why = format!("cannot read the notice: at detail.eventArn: {arn:?} is no event's");
        assert_eq!(refused(with("eventArn", arn)), why);
    }
}

#[test]
fn maintenance_that_should_have_begun_has_no_deadline_that_anybody_knows() {
    let read = notice(sample("health-scheduled-maintenance"));
    let Deadline::Hard(starts) = read.deadline else { panic!("no hard deadline") };
    let before = starts - jiff::SignedDuration::from_secs(1);
    assert_eq!(read.clone().at(before).deadline, Deadline::Hard(starts));
    assert_eq!(read.at(starts).deadline, Deadline::Unknown);
}
