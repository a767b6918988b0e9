//! Wait for load balancers after the last pod.

use spillway_core::cluster::ClusterName;

use super::*;
use crate::aws::target_groups::until_drained;

fn answer(action: &str, result: &str) -> String {
    format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>")
}

fn error(code: &str) -> String {
    format!("<ErrorResponse><Error><Code>{code}</Code><Message>why</Message></Error></ErrorResponse>")
}

fn described_groups(groups: &str) -> Expected {
    let groups = format!("<TargetGroups>{groups}</TargetGroups>");
    call("DescribeTargetGroups").says(200, answer("DescribeTargetGroups", &groups))
}

fn group(arn: &str, kind: &str) -> String {
    format!("<member><TargetGroupArn>{arn}</TargetGroupArn><TargetType>{kind}</TargetType></member>")
}

/// Two groups have instances, and one of them is the cluster's.
fn groups() -> [Expected; 2] {
    let groups = group("arn-ours", "instance") + &group("arn-theirs", "instance") + &group("arn-pods", "ip");
    let tagged = |arn: &str, cluster: &str| {
        let tag = format!("<member><Key>elbv2.k8s.aws/cluster</Key><Value>{cluster}</Value></member>");
        format!("<member><ResourceArn>{arn}</ResourceArn><Tags>{tag}</Tags></member>")
    };
    let tags = tagged("arn-ours", "prod") + &tagged("arn-theirs", "stage");
    let tags = answer("DescribeTags", &format!("<TagDescriptions>{tags}</TagDescriptions>"));
    [described_groups(&groups), call("DescribeTags").with("arn-theirs").without("arn-pods").says(200, tags)]
}

/// The cluster's group has another instance, and ours in that state.
fn health(state: &str) -> Expected {
    let target = |id: &str, state: &str| {
        let target = format!("<Target><Id>{id}</Id><Port>30080</Port></Target>");
        format!("<member>{target}<TargetHealth><State>{state}</State></TargetHealth></member>")
    };
    let targets = target("i-0fedcba9876543210", "healthy") + &target(NODE, state);
    let targets = format!("<TargetHealthDescriptions>{targets}</TargetHealthDescriptions>");
    call("DescribeTargetHealth").with("arn-ours").says(200, answer("DescribeTargetHealth", &targets))
}

/// Drains an empty node that gets the label for load balancers.
async fn drain_targets(case: &Case, aws: impl IntoIterator<Item = Expected>) -> (Result<Next, Failure>, Record) {
    let labelled = patch_node().with("exclude-from-external-load-balancers").says(200, node());
    let api = [labelled, list_pods(&[]), watch_pods(&[]), no_volumes().perhaps()];
    drain_case(&TestContext::new(&[("SPILLWAY_LOAD_BALANCERS", "wait")], api, aws), case).await
}

/// Drains a node whose hook is completed, and returns its waits.
async fn waited(aws: impl IntoIterator<Item = Expected>) -> AfterDrain {
    let aws = [hook_described(), group_described(false)].into_iter().chain(aws).chain([completed("CONTINUE")]);
    let (outcome, record) = drain_targets(&Case::held(Kind::Terminate), aws).await;
    assert_eq!(outcome.unwrap(), drained(0));
    record.after_drain.expect("late pods were watched for")
}

#[tokio::test(start_paused = true)]
async fn hook_waits_until_target_groups_release_the_instance() {
    let [healthy, unused] = [health("healthy"), health("unused")];
    let draining = health("draining").with("Targets.member.1.Port=30080");
    let waited = waited(groups().into_iter().chain([healthy, draining, unused])).await;
    // Two pauses between three polls.
    assert!((6_000..12_000).contains(&waited.targets_ms.expect("it was a target")), "{waited:?}");
    assert_eq!(waited.targets_left, None);
}

#[tokio::test(start_paused = true)]
async fn target_that_stays_holds_the_hook_for_ten_minutes() {
    let waited = waited(groups().into_iter().chain([health("draining").repeated()])).await;
    assert!(waited.targets_ms.is_some_and(|ms| (600_000..601_000).contains(&ms)), "{waited:?}");
    assert_eq!(waited.targets_left, Some(1));
}

#[tokio::test(start_paused = true)]
async fn hook_waits_for_no_unknown_gone_or_denied_target() {
    let at_once = AfterDrain { late_pods_ms: 5_000, ..AfterDrain::default() };
    for last in [health("unused"), call("DescribeTargetHealth").says(400, error("TargetGroupNotFound"))] {
        assert_eq!(waited(groups().into_iter().chain([last])).await, at_once);
    }
    let denied = call("DescribeTargetGroups").says(403, error("AccessDenied"));
    assert_eq!(waited([denied]).await.targets_ms, None);
    let (_, record) = drain_targets(&Case::spot(), []).await;
    assert_eq!(record.after_drain, Some(at_once), "no hook holds the instance");
}

#[tokio::test(start_paused = true)]
async fn tags_are_read_of_twenty_target_groups_a_call() {
    let groups: String = (1..=21).map(|n| group(&format!("arn-{n}"), "instance")).collect();
    let untagged = || call("DescribeTags").says(200, answer("DescribeTags", "<TagDescriptions></TagDescriptions>"));
    let aws = [
        described_groups(&groups),
        untagged().with("member.20=arn-20").without("arn-21"),
        untagged().with("member.1=arn-21"),
    ];
    let (context, end) = (TestContext::new(&[], [], aws), Instant::now() + Duration::from_secs(1));
    let left = until_drained(&context.load_balancing, &instance_id(), &ClusterName::new("prod"), end).await;
    assert_eq!(left.unwrap(), None);
}
