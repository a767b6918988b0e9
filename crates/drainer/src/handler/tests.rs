use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_core::clock::Clock;
use spillway_core::invocation::Invocation;
use spillway_notice::Home;
use spillway_receipt::LifecycleResult::Continue;
use spillway_receipt::Receipt;
use tokio::time::Instant;

use super::handle;
use crate::failure::Failure;
use crate::receipt::Ending;
use crate::test_support::api_server::{NODE, NODE_PATH, list, node, status};
use crate::test_support::aws::{
    completed, described, ec2_error, group_described, heartbeat, hook_described, invoked, query_error, scheduled,
};
use crate::test_support::context::TestContext;
use crate::test_support::script::{Expected, call};

const OURS: [(&str, &str); 2] = [("aws:eks:cluster-name", "prod"), ("aws:autoscaling:groupName", "my-asg")];

/// A sample of that name, about the instance of the tests, sent when the clock began.
pub(super) fn event(name: &str, instance: &str) -> Value {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let mut event: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    event["time"] = json!("1970-01-01T00:00:00Z");
    event["detail"][instance] = json!(NODE);
    event
}

/// An invocation of so many seconds, at home where the event is from.
pub(super) fn invocation(seconds: i64, event: &Value) -> Invocation {
    let part = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let end = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let mut invocation = Invocation::until(end, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
    invocation.home = Home { account: part("account"), region: part("region") };
    invocation
}

fn claim() -> Expected {
    call(format!("PATCH {NODE_PATH}"))
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_label_names_another_manager_is_decided_about_again() {
    let mut karpenters = node();
    karpenters["metadata"]["labels"]["karpenter.sh/nodepool"] = json!("default");
    let api =
        [claim().says(422, status(422, "Invalid", "nodes")), call(format!("GET {NODE_PATH}")).says(200, karpenters)];
    let context = TestContext::new(&[], api, [described("running", &OURS)]);
    let spot = event("spot-interruption", "instance-id");
    let invocation = invocation(900, &spot);
    let receipt = handle(&context, spot, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Ignored));
    assert_eq!((receipt.managed_by, receipt.decision), (Some("karpenter".into()), Some("ignore".into())));
}

#[tokio::test(start_paused = true)]
async fn wrong_setting_fails_each_notice_by_its_name_without_a_call() {
    for (sample, instance) in [("spot-interruption", "instance-id"), ("terminate-lifecycle-action", "EC2InstanceId")] {
        let context = TestContext::new(&[("SPILLWAY_DRAIN_ON", "sport")], [], []);
        let notice = event(sample, instance);
        let failure = handle(&context, notice.clone(), &invocation(900, &notice)).await.unwrap_err();
        assert_eq!(failure.error_type(), "WrongSettings");
        assert!(failure.text().contains("DrainOn is \"sport\""), "{}", failure.text());
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_is_a_failure_that_costs_no_call() {
    let context = TestContext::new(&[], [], []);
    let mut spot = event("spot-interruption", "instance-id");
    spot["detail"]["instance-id"] = json!("no instance");
    let invocation = invocation(900, &spot);
    let failure = handle(&context, spot, &invocation).await.unwrap_err();
    assert_eq!(failure.error_type(), "UnreadableNotice");
}

fn maintenance_at_00_11_30() -> Value {
    let mut maintenance = event("health-scheduled-maintenance", "unused");
    maintenance["detail"]["startTime"] = json!("Thu, 1 Jan 1970 00:11:30 GMT");
    maintenance["detail"]["affectedEntities"] = json!([{"entityValue": NODE, "status": "PENDING"}]);
    maintenance
}

#[tokio::test(start_paused = true)]
async fn maintenance_in_two_minutes_is_waited_for_without_a_schedule() {
    let mut opted_out = node();
    opted_out["metadata"]["labels"]["spillway/ignore"] = json!("");
    // The pace looks at the node, and so does the claim.
    let looks = [(); 2].map(|()| call(format!("GET {NODE_PATH}")).says(200, opted_out.clone()));
    let lead = [("SPILLWAY_MAINTENANCE_LEAD_S", "600")];
    let aws = [described("running", &OURS), scheduled_events("scheduled reboot")];
    let context = TestContext::new(&lead, looks, aws);
    let maintenance = maintenance_at_00_11_30();
    let (invocation, began) = (invocation(900, &maintenance), Instant::now());
    let receipt = handle(&context, maintenance, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Ignored), "{}", receipt.reason);
    assert_eq!(began.elapsed().as_secs(), 90);
}

/// EC2 is asked for the instance's events, and names one of 00:11:30.
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

/// Any request to the API server would fail the test.
#[tokio::test(start_paused = true)]
async fn maintenance_called_off_during_the_sleep_drains_no_node() {
    let lead = [("SPILLWAY_MAINTENANCE_LEAD_S", "600")];
    let aws = [described("running", &OURS), scheduled_events("[Canceled] scheduled reboot")];
    let context = TestContext::new(&lead, [], aws);
    let maintenance = maintenance_at_00_11_30();
    let invocation = invocation(900, &maintenance);
    let receipt = handle(&context, maintenance, &invocation).await.unwrap();
    assert_eq!((receipt.ending, receipt.node), (Some(Ending::Ignored), None), "{}", receipt.reason);
}

#[tokio::test(start_paused = true)]
async fn continuation_within_records_is_refused_without_a_call() {
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let payload = json!({"spillway-continuation": {"notice": terminate, "earlier": []}});
    let body = json!({"due": "1970-01-01T00:00:00Z", "payload": payload}).to_string();
    let queue = "arn:aws:sqs:us-east-1:999999999999:theirs";
    for body in [body, payload.to_string()] {
        let context = TestContext::new(&[], [], []);
        let forged = json!({"Records": [{"receiptHandle": "handle", "body": body, "eventSourceARN": queue}]});
        let invocation = invocation(900, &forged);
        let failure = handle(&context, forged, &invocation).await.unwrap_err();
        assert_eq!(failure.error_type(), "NotAnEvent");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_runs_and_that_ec2_does_not_describe_is_asked_about_by_an_undo_check() {
    let throttled = ec2_error("RequestLimitExceeded", "Request limit exceeded.");
    let aws = [
        call("DescribeInstances").says(503, throttled).repeated(),
        scheduled(&format!("{NODE}.instance-running.1")).with("spillway-undo-check"),
    ];
    let context = TestContext::new(&[], [], aws);
    let running = event("state-change-running", "instance-id");
    let invocation = invocation(900, &running);
    let receipt = handle(&context, running, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Continued));
    assert!(receipt.reason.starts_with("AWS gave no answer about the instance"), "{}", receipt.reason);
}

/// Nor can the node be looked at in place of the claim.
fn nobody_looks() -> Expected {
    call(format!("GET {NODE_PATH}")).says(503, "busy").repeated().at_any_time()
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_continued_when_the_invocation_is_over() {
    let busy = claim().says(503, "busy").repeated();
    let aws = [
        hook_described(),
        described("running", &OURS),
        group_described(false),
        heartbeat().at_any_time(),
        invoked().at_any_time(),
        heartbeat().at_any_time(),
    ];
    let context = TestContext::new(&[], [busy, nobody_looks()], aws);
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let invocation = invocation(60, &terminate);
    let receipt = handle(&context, terminate, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Continued));
}

/// Neither the node nor the hook is touched: any call beyond these would fail the test.
#[tokio::test(start_paused = true)]
async fn a_notice_of_another_groups_hook_is_ignored_and_answers_none() {
    let of_another = [OURS[0], ("aws:autoscaling:groupName", "batch")];
    for tags in [&of_another[..], &of_another[1..]] {
        let context = TestContext::new(
            &[("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")],
            [],
            [hook_described(), described("running", tags)],
        );
        let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
        let invocation = invocation(900, &terminate);
        let receipt = handle(&context, terminate, &invocation).await.unwrap();
        assert_eq!(receipt.ending, Some(Ending::Ignored));
        assert!(receipt.reason.contains("group my-asg, and instance") && receipt.reason.contains("is of group batch"));
    }
}

/// As above: `HooksWithoutNode` is not for whose cluster is known.
#[tokio::test(start_paused = true)]
async fn a_hook_of_a_cluster_that_is_left_to_others_gets_no_answer() {
    let settings = [("SPILLWAY_CLUSTERS", "stage"), ("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")];
    let context = TestContext::new(&settings, [], [hook_described(), described("running", &OURS)]);
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let invocation = invocation(900, &terminate);
    let receipt = handle(&context, terminate, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Ignored));
}

#[tokio::test(start_paused = true)]
async fn in_a_dry_run_nobody_asks_about_the_hook_or_holds_it() {
    let settings = [("SPILLWAY_CLUSTERS", "stage"), ("SPILLWAY_DRY_RUN", "true")];
    let context = TestContext::new(&settings, [], [described("running", &OURS)]);
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let invocation = invocation(900, &terminate);
    let receipt = handle(&context, terminate, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Ignored));
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_a_dry_run_is_left_to_no_later_invocation() {
    let throttled = ec2_error("RequestLimitExceeded", "Request limit exceeded.");
    let asked = call("DescribeInstances").says(503, throttled).repeated();
    let context = TestContext::new(&[("SPILLWAY_DRY_RUN", "true")], [], [asked]);
    let spot = event("spot-interruption", "instance-id");
    let invocation = invocation(60, &spot);
    let failure = handle(&context, spot, &invocation).await.unwrap_err();
    assert_eq!(failure.error_type(), "AwsThrottled");
}

#[tokio::test(start_paused = true)]
async fn only_an_instance_with_the_managed_tag_is_acted_on() {
    let settings =
        [("SPILLWAY_MANAGED_TAG", "team=shop"), ("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "spot")];
    for (team, ending) in [("shop", Ending::Done), ("kitchen", Ending::Ignored)] {
        let cordoned = (ending == Ending::Done).then(|| claim().says(200, node()));
        let context = TestContext::new(&settings, cordoned, [described("running", &[OURS[0], ("team", team)])]);
        let spot = event("spot-interruption", "instance-id");
        let invocation = invocation(900, &spot);
        let receipt = handle(&context, spot, &invocation).await.unwrap();
        assert_eq!(receipt.ending, Some(ending), "{}", receipt.reason);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_held_from_before_the_cordon() {
    let settings = [("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "terminate")];
    let aws =
        [hook_described(), described("running", &OURS), heartbeat().at_any_time(), completed("CONTINUE").at_any_time()];
    let context = TestContext::new(&settings, [claim().says(200, node())], aws);
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let invocation = invocation(900, &terminate);
    let receipt = handle(&context, terminate, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Done));
}

/// Any request to the API server would fail the test.
#[tokio::test(start_paused = true)]
async fn launch_hook_into_a_warm_pool_is_completed_at_once() {
    let answered = [heartbeat().perhaps(), completed("CONTINUE").at_any_time()];
    let aws = [hook_described(), described("running", &OURS)].into_iter().chain(answered);
    let context = TestContext::new(&[("SPILLWAY_LAUNCH", "ABANDON")], [], aws);
    let launch = event("launch-into-warm-pool", "EC2InstanceId");
    let invocation = invocation(900, &launch);
    let receipt = handle(&context, launch, &invocation).await.unwrap();
    assert_eq!((receipt.ending, receipt.decision), (Some(Ending::Ignored), Some("complete".into())));
    assert_eq!(receipt.hook.unwrap().result, Some(Continue));
}

#[tokio::test(start_paused = true)]
async fn unknown_destination_of_a_hook_is_a_warning_without_a_call() {
    let mut terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    terminate["detail"]["Destination"] = json!("Moon");
    let context = TestContext::new(&[], [], []);
    let invocation = invocation(900, &terminate);
    let receipt = handle(&context, terminate, &invocation).await.unwrap();
    assert_eq!((receipt.ending, receipt.warnings), (Some(Ending::Ignored), vec![receipt.reason]));
}

#[tokio::test(start_paused = true)]
async fn a_notice_of_a_time_that_aws_gives_none_is_ignored_before_anything_is_asked() {
    for time in ["1970-01-01T00:06:00Z", "1969-12-31T21:00:00Z"] {
        let context = TestContext::new(&[], [], []);
        let mut spot = event("spot-interruption", "instance-id");
        spot["time"] = json!(time);
        let invocation = invocation(900, &spot);
        let receipt = handle(&context, spot, &invocation).await.unwrap();
        assert_eq!(receipt.ending, Some(Ending::Ignored), "{time}");
    }
}

/// Completing the hook would fail the test.
#[tokio::test(start_paused = true)]
async fn hook_is_held_while_ec2_is_silent_and_no_node_is_found() {
    let no_node = |path: &str| call(format!("GET {path}")).says(404, status(404, "NotFound", "nodes"));
    let api = [no_node(NODE_PATH), no_node(&format!("{NODE_PATH}.ec2.internal"))];
    let lists = [("csinodes", "CSINode", "/apis/storage.k8s.io/v1"), ("nodes", "Node", "/api/v1")];
    let empty = lists.map(|(path, kind, api)| call(format!("GET {api}/{path}")).says(200, list(kind, &[])));
    let api = api.into_iter().chain(empty);
    let down = call("DescribeInstances").says(500, ec2_error("InternalError", "why")).repeated();
    let held = [heartbeat(), heartbeat(), invoked()].map(Expected::at_any_time);
    let aws = [down, hook_described()].into_iter().chain(held);
    let context = TestContext::new(&[("SPILLWAY_CLUSTERS", "prod")], api, aws);
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let invocation = invocation(100, &terminate);
    let receipt = handle(&context, terminate, &invocation).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Continued), "{}", receipt.reason);
}

/// Auto Scaling never says how long the hook waits.
#[tokio::test(start_paused = true)]
async fn silent_auto_scaling_does_not_hold_up_the_claim() {
    let (silent, cordon) = (call("DescribeLifecycleHooks").at_any_time(), claim().says(200, node()));
    let settings = [("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "terminate")];
    let aws = [described("running", &OURS), silent, completed("CONTINUE").at_any_time()];
    let (context, began) = (TestContext::new(&settings, [cordon], aws), Instant::now());
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let invocation = invocation(900, &terminate);
    handle(&context, terminate, &invocation).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 0);
}

/// A hook's notice whose minute passes while the API server is busy, in an invocation of so many seconds; and what follows at AWS.
async fn busy_to_the_end(
    seconds: i64,
    is_kept: bool,
    then: impl IntoIterator<Item = Expected>,
) -> Result<Receipt, Failure> {
    let busy = claim().says(503, "busy").repeated();
    let described =
        [hook_described(), described("running", &OURS), group_described(is_kept), heartbeat().at_any_time()];
    let aws = described.into_iter().chain(then);
    let context = TestContext::new(&[("SPILLWAY_HOOK_MAX_WAIT_S", "60")], [busy, nobody_looks()], aws);
    let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
    let invocation = invocation(seconds, &terminate);
    handle(&context, terminate, &invocation).await
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_fails_when_its_time_is_up_answers_its_hook_all_the_same() {
    for (is_kept, answer) in [(false, "CONTINUE"), (true, "ABANDON")] {
        let failure = busy_to_the_end(900, is_kept, [completed(answer)]).await.unwrap_err();
        assert_eq!(failure.error_type(), "KubernetesRefused");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_its_hook_that_aws_denies_is_left_to_no_later_invocation() {
    let denied = call("CompleteLifecycleAction").says(403, query_error("AccessDenied", "no"));
    let failure = busy_to_the_end(900, false, [denied]).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesRefused");
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_its_hook_that_aws_does_not_take_is_left_to_a_later_invocation() {
    let broken = call("CompleteLifecycleAction").says(500, query_error("InternalFailure", "no")).repeated();
    let then = [broken, invoked(), heartbeat(), heartbeat()].map(Expected::at_any_time);
    let receipt = busy_to_the_end(100, false, then).await.unwrap();
    assert_eq!(receipt.ending, Some(Ending::Continued));
}
