//! Tests: AWS Health events of every documented form.
use serde_json::{Value, json};

use super::super::tests::{continuation, home, notice, refused, sample, unhandled};
use super::super::{Deadline, Incoming, Instances, Kind, NoticeError, read};

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut event = sample("health-scheduled-maintenance");
    event["detail"][field] = value.into();
    event
}

/// Kind and instances of an event of several.
fn several(event: Value) -> (Kind, Vec<String>) {
    match read(event, &home()).unwrap() {
        Incoming::Several(several) => match several.instances {
            Instances::Named(named) => (several.kind, named.into_keys().collect()),
            other @ Instances::OfReservation(_) => panic!("{other:?}"),
        },
        other => panic!("not of several: {other:?}"),
    }
}

/// A code that contains `REBOOT` announces a reboot. Any other code announces the end of the instance.
#[test]
fn reboots_are_recognized_by_their_code() {
    for (event, reboots) in [
        (sample("health-scheduled-reboot"), true),
        (sample("health-flexible-reboot"), true),
        (sample("health-expedited-retirement"), false),
        (with("eventTypeCode", "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"), true),
        (with("eventTypeCode", "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"), false),
        (with("eventTypeCode", "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED"), false),
    ] {
        assert_eq!(notice(event.clone()).maintenance.unwrap().reboots, reboots, "{event}");
    }
}

#[test]
fn each_page_names_its_instances_once() {
    let (kind, first) = several(sample("health-scheduled-maintenance-page-1"));
    assert_eq!(kind, Kind::Maintenance);
    let all = ["i-1234567890abcdef0", "i-1234567890abcdef1", "i-1234567890abcdef9", "i-abcd1111"];
    assert_eq!(first, all, "a resolved one is called off");
    assert_eq!(notice(sample("health-scheduled-maintenance-page-2")).instance.as_str(), "i-1234567890abcdef2");
}

#[test]
fn closed_maintenance_is_over_for_all_instances() {
    let over = notice(sample("health-scheduled-maintenance-closed")).maintenance;
    assert_eq!(over, notice(sample("health-scheduled-maintenance")).maintenance);
    assert_eq!(over.unwrap().id, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED_90353408594353983");

    let mut event = sample("health-scheduled-maintenance-page-1");
    event["detail"]["statusCode"] = "closed".into();
    for entity in event["detail"]["affectedEntities"].as_array_mut().unwrap() {
        entity["status"] = "RESOLVED".into();
    }
    let (kind, instances) = several(event);
    assert_eq!((kind, instances.len()), (Kind::MaintenanceOver, 4));
}

/// One notice for each instance of an event that names several instances.
fn continued(event: Value) -> Vec<Value> {
    let Incoming::Several(several) = read(event, &home()).unwrap() else { panic!("not of several") };
    let Instances::Named(named) = &several.instances else { panic!("not named") };
    let histories = named.iter().map(|(id, entry)| several.history.for_entry(id, entry));
    histories.map(|history| continuation(&history)).collect()
}

#[test]
fn open_maintenance_is_over_for_resolved_instances() {
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
fn unknown_status_is_not_handled() {
    assert_eq!(notice(with("statusCode", "upcoming")).kind, Kind::Maintenance);
    assert_eq!(unhandled(with("statusCode", "postponed")), "Spillway does not know the statusCode \"postponed\"");
}

#[test]
fn unrelated_health_event_is_not_handled() {
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
    assert_eq!(
        unhandled(sample("health-dedicated-host")),
        "it names no instance",
        "EC2 reports its instances' reboots"
    );
    let why = "\"AWS_EC2_PLANNED_LIFECYCLE_EVENT\" takes no instance away";
    assert_eq!(unhandled(with("eventTypeCode", "AWS_EC2_PLANNED_LIFECYCLE_EVENT")), why);
}

#[test]
fn copy_in_a_backup_region_is_ignored_and_not_refused() {
    let mut copy = with("backupEvent", "true");
    copy["region"] = "us-west-2".into();
    assert!(unhandled(copy).starts_with("the backupEvent of this AWS Health event is \"true\""));
    // Without the field, its Region decides.
    let mut copy = with("backupEvent", Value::Null);
    copy["region"] = "us-west-2".into();
    assert!(unhandled(copy).starts_with("the eventRegion of this AWS Health event is \"us-east-1\""));
    // An event of another Region that a rule routes here is refused like any notice.
    let mut routed = with("eventRegion", "us-west-2");
    routed["region"] = "us-west-2".into();
    assert!(matches!(read(routed, &home()), Err(NoticeError::Foreign { .. })));
}

#[test]
fn other_entities_are_skipped() {
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
fn malformed_instance_fails_alone() {
    let why = "cannot read the notice: at detail.affectedEntities[].entityValue: \"i-123\" is no instance id";
    assert_eq!(refused(with("affectedEntities", json!([{"entityValue": "i-123"}]))), why);
    // Among others it is handed on like them.
    let entities = json!([{"entityValue": "i-123"}, {"entityValue": "i-1234567890abcdef0"}]);
    assert_eq!(several(with("affectedEntities", entities.clone())).1, ["i-123", "i-1234567890abcdef0"]);
    let each = continued(with("affectedEntities", entities));
    assert_eq!(refused(each[0].clone()), "cannot read the notice: at instance: \"i-123\" is no instance id");
    assert_eq!(notice(each[1].clone()).instance.as_str(), "i-1234567890abcdef0");
    assert!(!each[1].to_string().contains("i-123\""), "each continuation has only its own entry");
}

#[test]
fn start_is_required_only_of_open_maintenance() {
    let place = "cannot read the notice: at detail.startTime";
    assert_eq!(refused(with("startTime", Value::Null)), format!("{place}: it is missing"));
    let mut closed = sample("health-scheduled-maintenance-closed");
    closed["detail"].as_object_mut().unwrap().remove("startTime");
    notice(closed);
}

#[test]
fn event_without_an_id_is_refused() {
    for arn in ["", "arn:aws:health:us-east-1::event", "arn:aws:health:us-east-1::event/"] {
        let why = format!("cannot read the notice: at detail.eventArn: {arn:?} is no event's");
        assert_eq!(refused(with("eventArn", arn)), why);
    }
}

#[test]
fn started_maintenance_has_an_unknown_deadline() {
    let read = notice(sample("health-scheduled-maintenance"));
    let Deadline::Hard(starts) = read.deadline else { panic!("no hard deadline") };
    let before = starts - jiff::SignedDuration::from_secs(1);
    assert_eq!(read.clone().at(before).deadline, Deadline::Hard(starts));
    assert_eq!(read.at(starts).deadline, Deadline::Unknown);
}
