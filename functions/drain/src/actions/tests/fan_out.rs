use jiff::Timestamp;
use serde_json::json;

use crate::actions::fan_out::fan_out;
use crate::decision::Reason;
use crate::failure::Failure;
use crate::notice::{Instances, Kind, Several};
use crate::receipt::Outcome;
use crate::receipt::record::Record;
use crate::test_support::aws::{instances, json_error, put_event};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

const ONE: &str = "i-01111111111111111";
const OTHER: &str = "i-02222222222222222";

fn named() -> Instances {
    Instances::Named([ONE, OTHER].map(|id| (id.to_owned(), json!({"entityValue": id}))).into())
}

async fn fanned_out<const AWS: usize>(
    variables: &[(&str, &str)],
    aws: [Expected; AWS],
    instances: Instances,
) -> Result<Outcome, Failure> {
    let context = TestContext::new(variables, [], aws);
    let case = Case::spot();
    let mut history = case.history;
    history.notice = json!({"detail": {}});
    let (event_id, kind, time) = ("e-1".to_owned(), Kind::Maintenance, Timestamp::UNIX_EPOCH);
    let several = Several { event_id, kind, time, instances, history };
    fan_out(&context, &several, &case.invocation, &mut Record::default()).await
}

#[tokio::test(start_paused = true)]
async fn each_instance_gets_an_event_of_its_own() {
    let both = put_event().with(ONE).with(OTHER).with("Spillway Drain Continuation");
    assert_eq!(fanned_out(&[], [both], named()).await.unwrap(), Outcome::OneForEach(2));
}

#[tokio::test(start_paused = true)]
async fn only_what_the_bus_has_refused_is_put_again() {
    let failed = json!({"ErrorCode": "InternalFailure", "ErrorMessage": "why"});
    let half = call("PutEvents").with(ONE).with(OTHER);
    let half = half.says(200, json!({"FailedEntryCount": 1, "Entries": [{"EventId": "1"}, failed]}));
    let again = put_event().with(OTHER).without(ONE);
    assert_eq!(fanned_out(&[], [half, again], named()).await.unwrap(), Outcome::OneForEach(2));
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_denies_the_call_is_told_at_once() {
    let denied = call("PutEvents").says(400, json_error("AccessDeniedException"));
    assert_eq!(fanned_out(&[], [denied], named()).await.unwrap_err().error_type(), "AwsDenied");
}

#[tokio::test(start_paused = true)]
async fn the_instances_of_a_reservation_are_asked_of_ec2() {
    let asked = || call("DescribeInstances").with("capacity-reservation-id").with("cr-1");
    let reservation = || Instances::OfReservation("cr-1".to_owned());
    let item = format!("<item><instanceId>{ONE}</instanceId></item>");
    let one = [asked().says(200, instances(&item)), put_event().with(ONE)];
    assert_eq!(fanned_out(&[], one, reservation()).await.unwrap(), Outcome::OneForEach(1));
    let none = [asked().says(200, instances(""))];
    let ignored = Outcome::Ignored(Reason::EmptyReservation("cr-1".to_owned()));
    assert_eq!(fanned_out(&[], none, reservation()).await.unwrap(), ignored);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_names_the_instances_and_puts_nothing() {
    let outcome = fanned_out(&[("SPILLWAY_DRY_RUN", "true")], [], named()).await.unwrap();
    let text = outcome.to_string();
    assert!(text.contains(ONE) && text.contains(OTHER), "{text}");
}
