use spillway_core::decision::switch_of;

use super::*;
use crate::actions::look_up_maintenance::look_up;
use crate::test_support::settings;

/// A day after the tests' time; the drain begins up to an hour before.
const STARTS: &str = "1970-01-02T00:00:00Z";
const CLUSTER: (&str, &str) = ("kubernetes.io/cluster/prod", "owned");

/// EC2's description of a reboot of the instance.
fn named(description: &str) -> Expected {
    scheduled_events(&format!(
        "<item><instanceEventId>e-1</instanceEventId><code>system-reboot</code>\
         <description>{description}</description><notBefore>{STARTS}</notBefore></item>"
    ))
}

/// A reboot of a node of ours.
fn reboot() -> [Expected; 2] {
    [named("reboot"), described("running", &[CLUSTER])]
}

fn no_schedule() -> Expected {
    call("GET /schedules").says(200, json!({"Schedules": []}))
}

/// EventBridge Scheduler's schedule of the instance for that time.
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

fn outcome(named: usize, missing: usize) -> Outcome {
    Outcome::MaintenanceLookedUp { named, missing: vec![instance_id().to_string(); missing] }
}

#[tokio::test(start_paused = true)]
async fn maintenance_without_its_schedule_gets_an_invocation() {
    let begins_in_the_lead = schedule("1970-01-01T23:20:00");
    let continuation = invoked().with("found-reboot-19700102T00").with("aws.health");
    let aws = reboot().into_iter().chain([no_schedule(), continuation]);
    assert_eq!(looked_up(&[], aws).await.unwrap(), outcome(1, 1));
    let aws = reboot().into_iter().chain(schedule("1970-01-03T23:20:00")).chain([invoked()]);
    assert_eq!(looked_up(&[], aws).await.unwrap(), outcome(1, 1), "the schedule is of another maintenance");
    assert_eq!(looked_up(&[], reboot().into_iter().chain(begins_in_the_lead)).await.unwrap(), outcome(1, 0));
}

#[tokio::test(start_paused = true)]
async fn maintenance_that_is_over_or_left_to_others_does_not_count() {
    for description in ["[Completed] reboot", "[Canceled] reboot"] {
        assert_eq!(looked_up(&[], [named(description)]).await.unwrap(), outcome(0, 0), "{description}");
    }
    let karpenter = ("karpenter.sh/nodepool", "default");
    for (variables, tags) in
        [(&[][..], &[][..]), (&[], &[CLUSTER, karpenter]), (&[("SPILLWAY_CLUSTERS", "other")], &[CLUSTER])]
    {
        let aws = [named("reboot"), described("running", tags)];
        assert_eq!(looked_up(variables, aws).await.unwrap(), outcome(0, 0), "{variables:?} {tags:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn dry_run_hands_nothing_on() {
    let aws = reboot().into_iter().chain([no_schedule()]);
    let outcome = looked_up(&[("SPILLWAY_DRY_RUN", "true")], aws).await.unwrap();
    assert!(matches!(&outcome, Outcome::WouldHave(done) if done.contains(instance_id().as_str())), "{outcome}");
}

#[tokio::test(start_paused = true)]
async fn switched_off_maintenance_is_not_looked_up() {
    let variables = [("SPILLWAY_DRAIN_ON", "spot")];
    let reason = Reason::SwitchedOff(switch_of(Kind::Maintenance, &settings(&variables)));
    assert_eq!(looked_up(&variables, []).await.unwrap(), Outcome::Ignored(reason));
}
