use jiff::Timestamp;
use serde_json::json;
use spillway_core::decision::Reason;
use spillway_core::outcome::Outcome;
use spillway_notice::{Instances, Kind, Several};

use crate::actions::fan_out::fan_out;
use crate::failure::Failure;
use crate::receipt::record::Record;
use crate::test_support::aws::{INVOKE, instances, invoked, json_error};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::log::logged_in_time;
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

#[test]
fn each_instance_gets_an_invocation_of_its_own_and_there_is_nothing_to_tell() {
    let lines = logged_in_time(async {
        let each = [invoked().with(ONE).without(OTHER), invoked().with(OTHER).without(ONE)];
        assert_eq!(fanned_out(&[], each, named()).await.unwrap(), Outcome::OneForEach { instances: 2, left_out: 0 });
    });
    assert_eq!(lines, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn only_what_lambda_has_not_taken_is_tried_again() {
    let failed = call(INVOKE).with(OTHER).says(429, json_error("TooManyRequestsException"));
    let calls = [invoked().with(ONE), failed, invoked().with(OTHER)];
    assert_eq!(fanned_out(&[], calls, named()).await.unwrap(), Outcome::OneForEach { instances: 2, left_out: 0 });
}

#[tokio::test(start_paused = true)]
async fn an_invocation_that_is_denied_is_told_at_once() {
    let denied = || call(INVOKE).says(403, json_error("AccessDeniedException"));
    assert_eq!(fanned_out(&[], [denied(), denied().perhaps()], named()).await.unwrap_err().error_type(), "AwsDenied");
}

#[tokio::test(start_paused = true)]
async fn the_instances_of_a_reservation_are_asked_of_ec2() {
    let asked = || call("DescribeInstances").with("capacity-reservation-id").with("cr-1");
    let reservation = || Instances::OfReservation("cr-1".to_owned());
    let item = format!("<item><instanceId>{ONE}</instanceId></item>");
    let one = [asked().says(200, instances(&item)), invoked().with(ONE)];
    assert_eq!(fanned_out(&[], one, reservation()).await.unwrap(), Outcome::OneForEach { instances: 1, left_out: 0 });
    let none = [asked().says(200, instances(""))];
    let ignored = Outcome::Ignored(Reason::EmptyReservation("cr-1".to_owned()));
    assert_eq!(fanned_out(&[], none, reservation()).await.unwrap(), ignored);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_names_the_instances_and_invokes_nothing() {
    let outcome = fanned_out(&[("SPILLWAY_DRY_RUN", "true")], [], named()).await.unwrap();
    let text = outcome.to_string();
    assert!(text.contains(ONE) && text.contains(OTHER), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_notice_of_more_instances_than_an_account_has_invocations_leaves_the_rest_out_and_says_so() {
    let many = (0..1_002).map(|n| (format!("i-{n:017x}"), json!({})));
    let calls = [invoked().repeated()];
    let outcome = fanned_out(&[], calls, Instances::Named(many.collect())).await.unwrap();
    assert_eq!(outcome, Outcome::OneForEach { instances: 1_000, left_out: 2 });
    assert!(outcome.to_string().ends_with("1000; it names 2 more, which are left out"), "{outcome}");
}
