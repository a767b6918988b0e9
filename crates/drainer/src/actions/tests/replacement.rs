//! Replacement of an instance: the calls, the confirmation, and what a failure costs.

use spillway_core::replacement::{NotRequested, Replacement, TAG};
use spillway_core::test_support::tags;
use spillway_notice::{Deadline, Kind};
use tokio::time::Instant;

use crate::actions::replacement::replace;
use crate::test_support::aws::query_error;
use crate::test_support::context::{Case, TestContext, claim};
use crate::test_support::script::{Expected, call};

const ON: (&str, &str) = ("SPILLWAY_REPLACE", "spot,maintenance");
const TERMINATE: &str = "TerminateInstanceInAutoScalingGroup";

fn answer(action: &str, text: &str) -> String {
    format!("<{action}Response><{action}Result>{text}</{action}Result></{action}Response>")
}

fn group(state: &str) -> Expected {
    let (key, value) = TAG;
    let text = format!(
        "<AutoScalingGroups><member><AutoScalingGroupName>workers</AutoScalingGroupName><DesiredCapacity>3</DesiredCapacity>\
         <Tags><member><Key>{key}</Key><Value>{value}</Value></member></Tags><Instances><member>\
         <InstanceId>i-0123456789abcdef0</InstanceId><LifecycleState>{state}</LifecycleState></member></Instances>\
         </member></AutoScalingGroups>"
    );
    let groups = call("DescribeAutoScalingGroups").with("IncludeInstances=true").with("workers");
    groups.says(200, answer("DescribeAutoScalingGroups", &text)).at_any_time()
}

fn hooks() -> Expected {
    let hook = "<LifecycleHooks><member><LifecycleHookName>spillway</LifecycleHookName>\
                <LifecycleTransition>autoscaling:EC2_INSTANCE_TERMINATING</LifecycleTransition></member></LifecycleHooks>";
    call("DescribeLifecycleHooks").says(200, answer("DescribeLifecycleHooks", hook)).at_any_time()
}

/// So many replacements just now, one an hour ago, and activities of other causes between them.
fn activities(replaced: usize) -> Expected {
    let activity = |cause: &str, time: &str| {
        format!("<member><Cause>At {time} instance i-1 {cause}.</Cause><StartTime>{time}</StartTime></member>")
    };
    let request = "was taken out of service in response to a user request";
    let mut all = activity(request, "1970-01-01T00:00:00Z").repeat(replaced);
    all += &activity(&format!("{request}, shrinking the capacity from 3 to 2"), "1970-01-01T00:00:00Z");
    all += &activity("was taken out of service in response to an EC2 health check", "1970-01-01T00:00:00Z");
    all += &activity(request, "1969-12-31T22:59:59Z").repeat(9);
    let text = format!("<Activities>{all}</Activities>");
    call("DescribeScalingActivities").says(200, answer("DescribeScalingActivities", &text)).at_any_time()
}

fn spot_request(status: &str) -> Expected {
    let request = format!(
        "<DescribeSpotInstanceRequestsResponse><spotInstanceRequestSet><item><status><code>{status}</code>\
         <updateTime>1970-01-01T00:00:00Z</updateTime></status></item></spotInstanceRequestSet>\
         </DescribeSpotInstanceRequestsResponse>"
    );
    call("DescribeSpotInstanceRequests").with("SpotInstanceRequestId.1=sir-1").says(200, request).at_any_time()
}

fn terminate() -> Expected {
    let terminate = call(TERMINATE).with("InstanceId=i-0123456789abcdef0");
    terminate.with("ShouldDecrementDesiredCapacity=false").says(200, answer(TERMINATE, "<Activity></Activity>"))
}

fn checked(state: &str, status: &str) -> [Expected; 4] {
    // A refusal of the group may come before the call.
    [group(state), hooks(), activities(0), spot_request(status).perhaps()]
}

/// The result of a replacement at a spot notice, and after how many seconds.
async fn replaced(aws: impl IntoIterator<Item = Expected>) -> (String, u64) {
    let (context, mut case) = (TestContext::new(&[ON], [], aws), Case::spot());
    case.instance.spot_request = Some("sir-1".to_owned());
    case.instance.tags = tags(&[TAG, ("aws:autoscaling:groupName", "workers")]);
    let (attempt, began) = (case.attempt(&context).await, Instant::now());
    let replaced = replace(&context, &case.target(&attempt), &claim("e-1"), Kind::Spot).await.unwrap();
    (replaced.text(case.notice.time), began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn group_and_spot_request_are_checked_before_the_request() {
    let requested = checked("InService", "marked-for-termination").into_iter().chain([terminate()]);
    assert_eq!(replaced(requested).await, ("requested at 0.0 s".to_owned(), 0));
    let (told, seconds) = replaced(checked("Terminating:Wait", "fulfilled")).await;
    let refused = "not requested: the instance is Terminating:Wait in its group, not InService";
    assert_eq!((told.as_str(), seconds), (refused, 0), "EC2 is not waited for");
    let many = [group("InService"), hooks(), activities(5), spot_request("fulfilled").perhaps()];
    let refused = "not requested: the group replaced 5 instances in the last hour, and 5 is the limit";
    assert_eq!(replaced(many).await.0, refused);
}

#[tokio::test(start_paused = true)]
async fn status_that_lags_is_read_again_for_ten_seconds() {
    let late = ["fulfilled", "fulfilled", "marked-for-termination"].map(spot_request);
    let lagging = [group("InService"), hooks(), activities(0)].into_iter().chain(late).chain([terminate()]);
    let (told, seconds) = replaced(lagging).await;
    assert!(told.starts_with("requested at ") && seconds < 5, "{told}, {seconds} s");
    let never = [group("InService"), hooks(), activities(0), spot_request("fulfilled").repeated()];
    let (told, seconds) = replaced(never).await;
    assert!(told.contains("the spot request has the status fulfilled") && seconds == 10, "{told}, {seconds} s");
}

#[tokio::test(start_paused = true)]
async fn contended_group_is_checked_and_requested_again() {
    let contended = call(TERMINATE).says(500, query_error("ResourceContention", "a pending update"));
    let in_progress = call(TERMINATE).says(400, query_error("ScalingActivityInProgress", "activity"));
    let check = || checked("InService", "marked-for-termination");
    let calls = check().into_iter().chain([contended]).chain(check()).chain([in_progress]).chain(check());
    assert!(replaced(calls.chain([terminate()])).await.0.starts_with("requested at "));
}

#[tokio::test(start_paused = true)]
async fn failure_of_a_call_is_the_reason_within_half_a_minute() {
    let check = || checked("InService", "marked-for-termination").into_iter();
    let denied = call(TERMINATE).says(403, query_error("AccessDenied", "why"));
    let (told, seconds) = replaced(check().chain([denied])).await;
    assert!(told.starts_with("not requested: autoscaling:TerminateInstanceInAutoScalingGroup is denied"), "{told}");
    assert_eq!(seconds, 0);
    assert_eq!(replaced(check().chain([call(TERMINATE)])).await.1, 30, "it hangs");
}

#[tokio::test(start_paused = true)]
async fn maintenance_is_confirmed_by_the_scheduled_events() {
    for (code, description, is_requested) in
        [("instance-retirement", "degraded hardware", true), ("instance-stop", "[Canceled] degraded hardware", false)]
    {
        let text = format!(
            "<DescribeInstanceStatusResponse><instanceStatusSet><item><instanceId>i-0123456789abcdef0</instanceId><eventsSet>\
             <item><instanceEventId>instance-event-1</instanceEventId><code>{code}</code><description>{description}\
             </description><notBefore>1970-01-02T00:00:00Z</notBefore></item></eventsSet></item></instanceStatusSet>\
             </DescribeInstanceStatusResponse>"
        );
        let events = call("DescribeInstanceStatus").says(200, text).repeated().at_any_time();
        let aws = [group("InService"), hooks(), activities(0), events].into_iter().chain(is_requested.then(terminate));
        let (context, mut case) = (TestContext::new(&[ON], [], aws), Case::of(Kind::Maintenance, Deadline::Open));
        case.instance.tags = tags(&[TAG, ("aws:autoscaling:groupName", "workers")]);
        let attempt = case.attempt(&context).await;
        let target = case.target(&attempt);
        assert_eq!(replace(&context, &target, &claim("e-1"), Kind::Spot).await, None, "its drain comes first");
        let replaced = replace(&context, &target, &claim("e-1"), Kind::Maintenance).await;
        let refused = Some(Replacement::NotRequested(NotRequested::NotMaintained));
        assert_eq!(replaced != refused, is_requested, "{code} {description}: {replaced:?}");
    }
}
