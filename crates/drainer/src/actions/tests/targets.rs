//! What is waited for when the last pod has gone: load balancers that still know the instance.

use std::time::Duration;

use jiff::SignedDuration;
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_notice::Kind;
use tokio::time::Instant;

use super::drained;
use crate::actions::drain::drain;
use crate::aws::target_groups::until_drained;
use crate::failure::Failure;
use crate::receipt::AfterDrain;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, list, no_volumes, node};
use crate::test_support::aws::{completed, group_described, hook_described};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::instance_id;
use crate::test_support::script::{Expected, call};

const WAITS: [(&str, &str); 1] = [("SPILLWAY_LOAD_BALANCERS", "wait")];

/// What the API server is asked by the drain of an empty node that is to be labelled.
fn api() -> [Expected; 4] {
    [
        call(format!("PATCH {NODE_PATH}")).with("exclude-from-external-load-balancers").says(200, node()),
        call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &[])),
        call("GET /api/v1/pods").with("watch=true").streams(&[]),
        no_volumes().perhaps(),
    ]
}

fn answer(action: &str, result: &str) -> String {
    format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>")
}

/// Two groups have instances, one of them is the cluster's.
fn groups() -> [Expected; 2] {
    let group = |(arn, kind): (&str, &str)| {
        format!("<member><TargetGroupArn>{arn}</TargetGroupArn><TargetType>{kind}</TargetType></member>")
    };
    let groups = [("arn-ours", "instance"), ("arn-theirs", "instance"), ("arn-pods", "ip")].map(group).concat();
    let tagged = |arn: &str, cluster: &str| {
        let tag = format!("<member><Key>elbv2.k8s.aws/cluster</Key><Value>{cluster}</Value></member>");
        format!("<member><ResourceArn>{arn}</ResourceArn><Tags>{tag}</Tags></member>")
    };
    let tags = tagged("arn-ours", "prod") + &tagged("arn-theirs", "stage");
    let tags = answer("DescribeTags", &format!("<TagDescriptions>{tags}</TagDescriptions>"));
    [
        call("DescribeTargetGroups")
            .says(200, answer("DescribeTargetGroups", &format!("<TargetGroups>{groups}</TargetGroups>"))),
        call("DescribeTags").with("arn-theirs").without("arn-pods").says(200, tags),
    ]
}

/// The cluster's group is asked, and has another instance and ours in that state.
fn health(state: &str) -> Expected {
    let target = |id: &str, state: &str| {
        let target = format!("<Target><Id>{id}</Id><Port>30080</Port></Target>");
        format!("<member>{target}<TargetHealth><State>{state}</State></TargetHealth></member>")
    };
    let targets = target("i-0fedcba9876543210", "healthy") + &target(NODE, state);
    let targets = format!("<TargetHealthDescriptions>{targets}</TargetHealthDescriptions>");
    call("DescribeTargetHealth").with("arn-ours").says(200, answer("DescribeTargetHealth", &targets))
}

/// What was waited for in such a drain.
async fn waited(case: Case, aws: impl IntoIterator<Item = Expected>) -> AfterDrain {
    let context = TestContext::new(&WAITS, api(), aws);
    let mut record = Record::default();
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(outcome, drained(0));
    record.after_drain.expect("late pods were watched for")
}

/// What was waited for in a drain that a hook holds, until it is completed.
async fn waited_by_hook(aws: impl IntoIterator<Item = Expected>) -> AfterDrain {
    let aws = [hook_described(), group_described(false)].into_iter().chain(aws).chain([completed("CONTINUE")]);
    waited(Case::held(Kind::Terminate), aws).await
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_completed_when_the_clusters_target_groups_have_let_the_instance_go() {
    let [healthy, unused] = [health("healthy"), health("unused")];
    let draining = health("draining").with("Targets.member.1.Port=30080");
    let waited = waited_by_hook(groups().into_iter().chain([healthy, draining, unused])).await;
    // Twice between three looks.
    assert!((6_000..12_000).contains(&waited.targets_ms.expect("it was a target")), "{waited:?}");
    assert_eq!(waited.targets_left, None);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_never_let_go_holds_the_hook_for_twice_the_time_of_a_deregistration() {
    let waited = waited_by_hook(groups().into_iter().chain([health("draining").repeated()])).await;
    assert!(waited.targets_ms.is_some_and(|ms| (600_000..601_000).contains(&ms)), "{waited:?}");
    assert_eq!(waited.targets_left, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_there_when_the_invocation_is_over_holds_the_hook_in_the_next_one() {
    let aws = [hook_described(), group_described(false)].into_iter().chain(groups());
    let context = TestContext::new(&WAITS, api(), aws.chain([health("draining").repeated()]));
    let mut case = Case::held(Kind::Terminate);
    let clock = case.invocation.clock;
    case.invocation = Invocation::until(clock.now() + SignedDuration::from_secs(120), "r-1", clock);
    let attempt = case.attempt(&context).await;
    let failure = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap_err();
    assert!(matches!(failure, Failure::StillHeld { .. }), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_no_load_balancer_knows_and_a_group_that_has_gone_hold_no_hook() {
    let gone = "<ErrorResponse><Error><Code>TargetGroupNotFound</Code><Message>why</Message></Error></ErrorResponse>";
    for last in [health("unused"), call("DescribeTargetHealth").says(400, gone)] {
        let waited = waited_by_hook(groups().into_iter().chain([last])).await;
        assert_eq!(waited, AfterDrain { late_pods_ms: 5_000, ..AfterDrain::default() });
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_right_no_load_balancer_is_waited_for() {
    let denied = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>why</Message></Error></ErrorResponse>";
    let waited = waited_by_hook([call("DescribeTargetGroups").says(403, denied)]).await;
    assert_eq!(waited.targets_ms, None);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_no_hook_holds_goes_whatever_its_load_balancers_do() {
    let context = TestContext::new(&WAITS, api(), []);
    let (case, mut record) = (Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(record.after_drain.expect("late pods were watched for").targets_ms, None);
}

#[tokio::test(start_paused = true)]
async fn the_tags_of_no_more_than_twenty_target_groups_are_asked_for_at_once() {
    let group =
        |n| format!("<member><TargetGroupArn>arn-{n}</TargetGroupArn><TargetType>instance</TargetType></member>");
    let groups = format!("<TargetGroups>{}</TargetGroups>", (1..=21).map(group).collect::<String>());
    let untagged = || call("DescribeTags").says(200, answer("DescribeTags", "<TagDescriptions></TagDescriptions>"));
    let aws = [
        call("DescribeTargetGroups").says(200, answer("DescribeTargetGroups", &groups)),
        untagged().with("member.20=arn-20").without("arn-21"),
        untagged().with("member.1=arn-21"),
    ];
    let (context, end) = (TestContext::new(&[], [], aws), Instant::now() + Duration::from_secs(1));
    let left = until_drained(&context.load_balancing, &instance_id(), &ClusterName::new("prod"), end).await;
    assert_eq!(left.unwrap(), None);
}
