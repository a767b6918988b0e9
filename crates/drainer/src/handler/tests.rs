use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_core::clock::Clock;
use spillway_core::invocation::Invocation;
use spillway_notice::Home;

use super::handle;
use crate::receipt::Ending;
use crate::test_support::api_server::{NODE, NODE_PATH, node, status};
use crate::test_support::aws::{completed, described, group_described, heartbeat, hook_described, invoked};
use crate::test_support::context::TestContext;
use crate::test_support::script::{Expected, call};

const OURS: [(&str, &str); 2] = [("aws:eks:cluster-name", "prod"), ("aws:autoscaling:groupName", "my-asg")];

/// A sample of that name, about the instance of the tests, sent when the clock began.
fn event(name: &str, instance: &str) -> Value {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let mut event: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    event["time"] = json!("1970-01-01T00:00:00Z");
    event["detail"][instance] = json!(NODE);
    event
}

/// An invocation of so many seconds, at home where the event is from.
fn invocation(seconds: i64, event: &Value) -> Invocation {
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
async fn an_event_that_cannot_be_read_is_a_failure_that_costs_no_call() {
    let context = TestContext::new(&[], [], []);
    let mut spot = event("spot-interruption", "instance-id");
    spot["detail"]["instance-id"] = json!("no instance");
    let invocation = invocation(900, &spot);
    let failure = handle(&context, spot, &invocation).await.unwrap_err();
    assert_eq!(failure.error_type(), "UnreadableNotice");
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

#[tokio::test(start_paused = true)]
async fn a_notice_that_fails_when_its_time_is_up_answers_its_hook_all_the_same() {
    for (is_kept, answer) in [(false, "CONTINUE"), (true, "ABANDON")] {
        let busy = claim().says(503, "busy").repeated();
        let described = [hook_described(), described("running", &OURS), group_described(is_kept)];
        let aws = described.into_iter().chain([heartbeat().at_any_time(), completed(answer)]);
        let variables = [("SPILLWAY_HOOK_MAX_WAIT_S", "60")];
        let context = TestContext::new(&variables, [busy, nobody_looks()], aws);
        let terminate = event("terminate-lifecycle-action", "EC2InstanceId");
        let invocation = invocation(900, &terminate);
        let failure = handle(&context, terminate, &invocation).await.unwrap_err();
        assert_eq!(failure.error_type(), "KubernetesRefused");
    }
}
