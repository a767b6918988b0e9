use spillway_notice::{Instances, Several};

use super::*;
use crate::actions::fan_out::fan_out;
use crate::test_support::aws::instances;

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
    let (context, case) = (TestContext::new(variables, [], aws), Case::spot());
    let mut history = case.history;
    history.notice = json!({"detail": {}});
    let (event_id, kind, time) = ("e-1".to_owned(), Kind::Maintenance, Timestamp::UNIX_EPOCH);
    let several = Several { event_id, kind, time, instances, history };
    fan_out(&context, &several, &case.invocation, &mut Record::default()).await
}

fn each(instances: usize) -> Outcome {
    Outcome::OneForEach { instances, left_out: 0 }
}

#[tokio::test(start_paused = true)]
async fn each_instance_gets_its_own_invocation() {
    let invocations = [invoked().with(ONE).without(OTHER), invoked().with(OTHER).without(ONE)];
    assert_eq!(fanned_out(&[], invocations, named()).await.unwrap(), each(2));
}

#[tokio::test(start_paused = true)]
async fn only_the_failed_invocation_is_repeated() {
    let failed = call(INVOKE).with(OTHER).says(429, json_error("TooManyRequestsException"));
    let calls = [invoked().with(ONE), failed, invoked().with(OTHER)];
    assert_eq!(fanned_out(&[], calls, named()).await.unwrap(), each(2));
    let denied = || call(INVOKE).says(403, json_error("AccessDeniedException"));
    assert_eq!(fanned_out(&[], [denied(), denied().perhaps()], named()).await.unwrap_err().error_type(), "AwsDenied");
}

#[tokio::test(start_paused = true)]
async fn instances_of_a_reservation_are_described_by_ec2() {
    let describe = || call("DescribeInstances").with("capacity-reservation-id").with("cr-1");
    let reservation = || Instances::OfReservation("cr-1".to_owned());
    let item = format!("<item><instanceId>{ONE}</instanceId></item>");
    let one = [describe().says(200, instances(&item)), invoked().with(ONE)];
    assert_eq!(fanned_out(&[], one, reservation()).await.unwrap(), each(1));
    let none = [describe().says(200, instances(""))];
    let ignored = Outcome::Ignored(Reason::EmptyReservation("cr-1".to_owned()));
    assert_eq!(fanned_out(&[], none, reservation()).await.unwrap(), ignored);
}

#[tokio::test(start_paused = true)]
async fn dry_run_names_the_instances_and_invokes_nothing() {
    let text = fanned_out(&[("SPILLWAY_DRY_RUN", "true")], [], named()).await.unwrap().to_string();
    assert!(text.contains(ONE) && text.contains(OTHER), "{text}");
}

#[tokio::test(start_paused = true)]
async fn instances_beyond_a_thousand_are_left_out() {
    let many = (0..1_002).map(|n| (format!("i-{n:017x}"), json!({})));
    let outcome = fanned_out(&[], [invoked().repeated()], Instances::Named(many.collect())).await.unwrap();
    assert_eq!(outcome, Outcome::OneForEach { instances: 1_000, left_out: 2 });
}
