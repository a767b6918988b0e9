use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_core::clock::Clock;
use spillway_core::invocation::Invocation;
use spillway_notice::Home;
use spillway_receipt::LifecycleResult::Continue;
use spillway_receipt::Receipt;
use tokio::time::Instant;

use super::handle;
use crate::context::Context;
use crate::failure::Failure;
use crate::receipt::Ending;
use crate::test_support::api_server::{NODE, NODE_PATH, node, status};
use crate::test_support::aws::{
    completed, described, ec2_error, group_described, heartbeat, hook_described, invoked, query_error, scheduled,
};
use crate::test_support::context::TestContext;
use crate::test_support::script::{Expected, call};

pub(super) const OURS: [(&str, &str); 2] = [("aws:eks:cluster-name", "prod"), ("aws:autoscaling:groupName", "my-asg")];
const CORDON_AT_TERMINATE: [(&str, &str); 2] = [("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "terminate")];

/// Sample event about the instance of the tests, sent at the start of the clock.
pub(super) fn event(name: &str, instance: &str) -> Value {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let mut event: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    event["time"] = json!("1970-01-01T00:00:00Z");
    event["detail"][instance] = json!(NODE);
    event
}

pub(super) fn spot() -> Value {
    event("spot-interruption", "instance-id")
}

fn terminate() -> Value {
    event("terminate-lifecycle-action", "EC2InstanceId")
}

/// Handles an event in an invocation of 900 s.
pub(super) async fn handled(context: &Context, event: Value) -> Result<Receipt, Failure> {
    handled_within(900, context, event).await
}

/// Handles an event in an invocation of this many seconds, in the event's account and Region.
async fn handled_within(seconds: i64, context: &Context, event: Value) -> Result<Receipt, Failure> {
    let part = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let end = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let mut invocation = Invocation::until(end, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
    invocation.home = Home { account: part("account"), region: part("region") };
    // Boxed: rustc limits the depth of nested futures.
    Box::pin(handle(context, event, &invocation)).await
}

fn claim() -> Expected {
    call(format!("PATCH {NODE_PATH}"))
}

fn throttled() -> Expected {
    let error = ec2_error("RequestLimitExceeded", "Request limit exceeded.");
    call("DescribeInstances").says(503, error).repeated()
}

#[tokio::test(start_paused = true)]
async fn node_label_of_another_manager_changes_the_decision() {
    let mut karpenters = node();
    karpenters["metadata"]["labels"]["karpenter.sh/nodepool"] = json!("default");
    let api =
        [claim().says(422, status(422, "Invalid", "nodes")), call(format!("GET {NODE_PATH}")).says(200, karpenters)];
    let context = TestContext::new(&[], api, [described("running", &OURS)]);
    let receipt = handled(&context, spot()).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Ignored));
    assert_eq!((receipt.managed_by, receipt.decision), (Some("karpenter".into()), Some("ignore".into())));
}

#[tokio::test(start_paused = true)]
async fn wrong_setting_fails_each_notice_by_its_name_without_a_call() {
    for notice in [spot(), terminate()] {
        let context = TestContext::new(&[("SPILLWAY_DRAIN_ON", "sport")], [], []);
        let failure = handled(&context, notice).await.unwrap_err();
        assert_eq!(failure.error_type(), "WrongSettings");
        assert!(failure.text().contains("DrainOn is \"sport\""), "{}", failure.text());
    }
}

fn maintenance_at_00_11_30() -> Value {
    let mut maintenance = event("health-scheduled-maintenance", "unused");
    maintenance["detail"]["startTime"] = json!("Thu, 1 Jan 1970 00:11:30 GMT");
    maintenance["detail"]["affectedEntities"] = json!([{"entityValue": NODE, "status": "PENDING"}]);
    maintenance
}

/// EC2 describes one scheduled event at 00:11:30.
fn scheduled_events(description: &str) -> Expected {
    let event = format!(
        "<item><instanceEventId>e-1</instanceEventId><code>system-reboot</code><description>{description}</description>\
         <notBefore>1970-01-01T00:11:30Z</notBefore></item>"
    );
    let status = format!("<item><instanceId>{NODE}</instanceId><eventsSet>{event}</eventsSet></item>");
    let answer = format!("<instanceStatusSet>{status}</instanceStatusSet>");
    call("DescribeInstanceStatus")
        .says(200, format!("<DescribeInstanceStatusResponse>{answer}</DescribeInstanceStatusResponse>"))
}

/// The node is opted out, so that the drain ends at the claim.
#[tokio::test(start_paused = true)]
async fn maintenance_in_two_minutes_is_slept_for_and_looked_up_again() {
    let mut opted_out = node();
    opted_out["metadata"]["labels"]["spillway/ignore"] = json!("");
    for (description, requests) in [("scheduled reboot", 2), ("[Canceled] scheduled reboot", 0)] {
        // The pace reads the node, then the claim.
        let looks = (0..requests).map(|_| call(format!("GET {NODE_PATH}")).says(200, opted_out.clone()));
        let aws = [described("running", &OURS), scheduled_events(description)];
        let context = TestContext::new(&[("SPILLWAY_MAINTENANCE_LEAD_S", "600")], looks, aws);
        let began = Instant::now();
        let receipt = handled(&context, maintenance_at_00_11_30()).await.unwrap();
        assert_eq!(receipt.ending, Some(Ending::Ignored), "{}", receipt.reason);
        assert_eq!(began.elapsed().as_secs(), 90);
    }
}

#[tokio::test(start_paused = true)]
async fn continuation_within_records_is_refused_without_a_call() {
    let payload = json!({"spillway-continuation": {"notice": terminate(), "earlier": []}});
    let body = json!({"due": "1970-01-01T00:00:00Z", "payload": payload}).to_string();
    let queue = "arn:aws:sqs:us-east-1:999999999999:theirs";
    for body in [body, payload.to_string()] {
        let context = TestContext::new(&[], [], []);
        let forged = json!({"Records": [{"receiptHandle": "handle", "body": body, "eventSourceARN": queue}]});
        assert_eq!(handled(&context, forged).await.unwrap_err().error_type(), "NotAnEvent");
    }
}

#[tokio::test(start_paused = true)]
async fn running_instance_that_ec2_does_not_describe_is_checked_later() {
    let aws = [throttled(), scheduled(&format!("{NODE}.instance-running.1")).with("spillway-undo-check")];
    let context = TestContext::new(&[], [], aws);
    let receipt = handled(&context, event("state-change-running", "instance-id")).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Continued));
    assert!(receipt.reason.starts_with("AWS gave no answer about the instance"), "{}", receipt.reason);
}

/// Neither node nor hook is touched.
#[tokio::test(start_paused = true)]
async fn foreign_hook_is_ignored_without_a_completion() {
    let of_another = [OURS[0], ("aws:autoscaling:groupName", "batch")];
    let complete = ("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE");
    let other_cluster = ("SPILLWAY_CLUSTERS", "stage");
    let other_group = "group batch";
    for (settings, tags, reason) in [
        (&[complete][..], &of_another[..], other_group),
        (&[complete][..], &of_another[1..], other_group),
        (&[complete, other_cluster][..], &OURS[..], "cluster prod"),
        (&[("SPILLWAY_DRY_RUN", "true"), other_cluster][..], &OURS[..], "cluster prod"),
    ] {
        // A dry run does not even describe the hook.
        let hook = (!settings.contains(&("SPILLWAY_DRY_RUN", "true"))).then(hook_described);
        let context = TestContext::new(settings, [], hook.into_iter().chain([described("running", tags)]));
        let receipt = handled(&context, terminate()).await.unwrap();
        assert_eq!(receipt.ending, Some(Ending::Ignored));
        assert!(receipt.reason.contains(reason), "{}", receipt.reason);
    }
}

#[tokio::test(start_paused = true)]
async fn failure_in_a_dry_run_is_not_continued() {
    let context = TestContext::new(&[("SPILLWAY_DRY_RUN", "true")], [], [throttled()]);
    let failure = handled_within(60, &context, spot()).await.unwrap_err();
    assert_eq!(failure.error_type(), "AwsThrottled");
}

#[tokio::test(start_paused = true)]
async fn managed_tag_selects_the_instances() {
    let settings =
        [("SPILLWAY_MANAGED_TAG", "team=shop"), ("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "spot")];
    for (team, ending) in [("shop", Ending::Done), ("kitchen", Ending::Ignored)] {
        let cordoned = (ending == Ending::Done).then(|| claim().says(200, node()));
        let context = TestContext::new(&settings, cordoned, [described("running", &[OURS[0], ("team", team)])]);
        let receipt = handled(&context, spot()).await.unwrap();
        assert_eq!(receipt.ending, Some(ending), "{}", receipt.reason);
    }
}

#[tokio::test(start_paused = true)]
async fn launch_hook_into_a_warm_pool_is_completed_at_once() {
    let answered = [heartbeat().perhaps(), completed("CONTINUE").at_any_time()];
    let aws = [hook_described(), described("running", &OURS)].into_iter().chain(answered);
    let context = TestContext::new(&[("SPILLWAY_LAUNCH", "ABANDON")], [], aws);
    let receipt = handled(&context, event("launch-into-warm-pool", "EC2InstanceId")).await.unwrap();
    assert_eq!((receipt.ending, receipt.decision), (Some(Ending::Ignored), Some("complete".into())));
    assert_eq!(receipt.hook.unwrap().result, Some(Continue));
}

#[tokio::test(start_paused = true)]
async fn unknown_destination_of_a_hook_is_a_warning_without_a_call() {
    let (mut terminate, context) = (terminate(), TestContext::new(&[], [], []));
    terminate["detail"]["Destination"] = json!("Moon");
    let receipt = handled(&context, terminate).await.unwrap();
    assert_eq!((receipt.ending, receipt.warnings), (Some(Ending::Ignored), vec![receipt.reason]));
}

#[tokio::test(start_paused = true)]
async fn silent_auto_scaling_does_not_hold_up_the_claim() {
    let silent = call("DescribeLifecycleHooks").at_any_time();
    let aws = [described("running", &OURS), silent, completed("CONTINUE").at_any_time()];
    let context = TestContext::new(&CORDON_AT_TERMINATE, [claim().says(200, node())], aws);
    let began = Instant::now();
    handled(&context, terminate()).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 0);
}

/// Handles a hook's notice with a busy API server, in an invocation of this many seconds. `aws` are the calls at the end.
async fn busy_to_the_end<const N: usize>(
    seconds: i64,
    settings: &[(&str, &str)],
    is_kept: bool,
    aws: [Expected; N],
) -> Result<Receipt, Failure> {
    let node_is_unreadable = call(format!("GET {NODE_PATH}")).says(503, "busy").repeated().at_any_time();
    let described =
        [hook_described(), described("running", &OURS), group_described(is_kept), heartbeat().at_any_time()];
    let aws = described.into_iter().chain(aws.map(Expected::at_any_time));
    let context = TestContext::new(settings, [claim().says(503, "busy").repeated(), node_is_unreadable], aws);
    handled_within(seconds, &context, terminate()).await
}

/// The notice has a minute. A completion that AWS does not answer is left to a later invocation, a denied one to the timeout.
#[tokio::test(start_paused = true)]
async fn failed_notice_completes_its_hook_at_the_end_of_its_time() {
    let minute = [("SPILLWAY_HOOK_MAX_WAIT_S", "60")];
    let answer = |code, error| call("CompleteLifecycleAction").says(code, query_error(error, "no"));
    for (is_kept, completion) in
        [(false, completed("CONTINUE")), (true, completed("ABANDON")), (false, answer(403, "AccessDenied"))]
    {
        let failure = busy_to_the_end(900, &minute, is_kept, [completion]).await.unwrap_err();
        assert_eq!(failure.error_type(), "KubernetesRefused");
    }
    let broken = answer(500, "InternalFailure").repeated();
    let receipt = busy_to_the_end(100, &minute, false, [broken, invoked(), heartbeat(), heartbeat()]).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Continued));
}
