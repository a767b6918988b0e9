use serde_json::json;
use spillway_core::decision::{Reason, switch_of};
use spillway_core::outcome::Outcome;
use spillway_notice::Kind;

use crate::actions::look_up_maintenance::look_up;
use crate::failure::Failure;
use crate::receipt::record::Record;
use crate::test_support::aws::{INVOKE, described, invoked, json_error};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};
use crate::test_support::{instance_id, settings};

/// A day after the tests' time; the drain begins up to an hour before.
const STARTS: &str = "1970-01-02T00:00:00Z";
const CLUSTER: (&str, &str) = ("kubernetes.io/cluster/prod", "owned");

/// EC2 names a reboot of the instance with that description.
fn named(description: &str) -> Expected {
    let event = format!(
        "<item><instanceEventId>e-1</instanceEventId><code>system-reboot</code>\
         <description>{description}</description><notBefore>{STARTS}</notBefore></item>"
    );
    let status = format!("<item><instanceId>{}</instanceId><eventsSet>{event}</eventsSet></item>", instance_id());
    let answer = format!("<instanceStatusSet>{status}</instanceStatusSet>");
    call("DescribeInstanceStatus")
        .says(200, format!("<DescribeInstanceStatusResponse>{answer}</DescribeInstanceStatusResponse>"))
}

/// EventBridge Scheduler has no schedule of the instance.
fn no_schedule() -> Expected {
    call("GET /schedules").says(200, json!({"Schedules": []}))
}

/// EventBridge Scheduler has a schedule of the instance for that time.
fn schedule(at: &str) -> [Expected; 2] {
    let name = format!("{}.M-1", instance_id());
    let listed = json!({"Schedules": [{"Name": name}]});
    let found =
        json!({"ScheduleExpression": format!("at({at})"), "Target": {"Arn": "a", "RoleArn": "r", "Input": "{}"}});
    [call("GET /schedules").says(200, listed), call(format!("GET /schedules/{name}")).says(200, found)]
}

async fn looked_up(variables: &[(&str, &str)], aws: impl IntoIterator<Item = Expected>) -> Result<Outcome, Failure> {
    let context = TestContext::new(variables, [], aws);
    look_up(&context, &Case::spot().invocation, &mut Record::default()).await
}

fn outcome(named: usize, missing: &[&str]) -> Outcome {
    Outcome::MaintenanceLookedUp { named, missing: missing.iter().map(|id| (*id).to_owned()).collect() }
}

#[tokio::test(start_paused = true)]
async fn maintenance_without_a_schedule_gets_an_invocation() {
    let continuation = invoked().with("found-reboot-19700102T00").with("aws.health");
    let aws = [named("reboot"), described("running", &[CLUSTER]), no_schedule(), continuation];
    assert_eq!(looked_up(&[], aws).await.unwrap(), outcome(1, &[instance_id().as_str()]));
}

#[tokio::test(start_paused = true)]
async fn maintenance_with_a_schedule_is_left() {
    let aws = [named("reboot"), described("running", &[CLUSTER])].into_iter();
    let begins_in_the_lead = schedule("1970-01-01T23:20:00");
    assert_eq!(looked_up(&[], aws.chain(begins_in_the_lead)).await.unwrap(), outcome(1, &[]));
}

#[tokio::test(start_paused = true)]
async fn schedule_of_another_maintenance_counts_for_none() {
    let aws = [named("reboot"), described("running", &[CLUSTER])].into_iter();
    let aws = aws.chain(schedule("1970-01-03T23:20:00")).chain([invoked()]);
    assert_eq!(looked_up(&[], aws).await.unwrap(), outcome(1, &[instance_id().as_str()]));
}

#[tokio::test(start_paused = true)]
async fn maintenance_that_is_over_is_left() {
    for description in ["[Completed] reboot", "[Canceled] reboot"] {
        assert_eq!(looked_up(&[], [named(description)]).await.unwrap(), outcome(0, &[]), "{description}");
    }
}

#[tokio::test(start_paused = true)]
async fn instances_that_are_left_to_others_are_not_counted() {
    let karpenter = ("karpenter.sh/nodepool", "default");
    for (variables, tags) in
        [(&[][..], &[][..]), (&[], &[CLUSTER, karpenter]), (&[("SPILLWAY_CLUSTERS", "other")], &[CLUSTER])]
    {
        let aws = [named("reboot"), described("running", tags)];
        assert_eq!(looked_up(variables, aws).await.unwrap(), outcome(0, &[]), "{variables:?} {tags:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn dry_run_hands_nothing_on() {
    let aws = [named("reboot"), described("running", &[CLUSTER]), no_schedule()];
    let outcome = looked_up(&[("SPILLWAY_DRY_RUN", "true")], aws).await.unwrap();
    assert!(matches!(&outcome, Outcome::WouldHave(done) if done.contains(instance_id().as_str())), "{outcome}");
}

#[tokio::test(start_paused = true)]
async fn switched_off_maintenance_is_not_looked_up() {
    let variables = [("SPILLWAY_DRAIN_ON", "spot")];
    let outcome = looked_up(&variables, []).await.unwrap();
    let settings = settings(&variables);
    assert_eq!(outcome, Outcome::Ignored(Reason::SwitchedOff(switch_of(Kind::Maintenance, &settings))));
}

#[tokio::test(start_paused = true)]
async fn denied_call_fails_the_lookup() {
    let denied = call(INVOKE).says(403, json_error("AccessDeniedException"));
    let aws = [named("reboot"), described("running", &[CLUSTER]), no_schedule(), denied];
    assert_eq!(looked_up(&[], aws).await.unwrap_err().error_type(), "AwsDenied");
}
