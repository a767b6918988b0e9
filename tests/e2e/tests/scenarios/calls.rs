//! The function's role: exactly the calls that it makes, no more and no less.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::maintenance::Maintenance;
use spillway_e2e::{Stage, allowed_calls, sample, world};

#[tokio::test]
async fn the_role_in_the_template_allows_exactly_the_calls_that_the_function_was_seen_to_make() {
    let name = "calls".to_owned();
    // The tag is not on the instance, so that its group is asked.
    let group =
        world().await.aws_side().put_tagged_group(&name, &[Hook::terminate("spillway")], &[("team", "shop")]).await;
    group.expect("the group is new");
    let stage = Stage::set_with(&name, NodeOptions { group: Some(name.clone()), ..NodeOptions::default() }).await;
    // Longer than the first invocation, so that it is handed on.
    let timeout = Duration::from_secs(15);
    // A stack of its own: what the self-test of another has written down is not written again.
    let env = [("SPILLWAY_MANAGED_TAG", "team"), ("SPILLWAY_STACK", name.as_str())];
    let env = env.map(|(setting, value)| (setting.to_owned(), value.to_owned())).into();
    let stage = stage.with_function(LambdaOptions { timeout, env, ..LambdaOptions::default() }).await;
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_secs(12))).await;

    // Announced for later, put off and called off: scheduled, moved and taken away.
    let maintenance = Maintenance::of(&stage.node.instance_id, Timestamp::now() + SignedDuration::from_hours(200));
    let put_off = maintenance.moved_to(Timestamp::now() + SignedDuration::from_hours(300));
    for notice in [maintenance.notice("announced"), put_off.notice("put-off"), put_off.closed("closed")] {
        let outcome = stage.notify(&notice).await;
        assert!(outcome.result.is_ok(), "{outcome:#?}");
    }
    let first = stage.lambda.invoke(stage.terminate().await).await;
    let second = stage.lambda.invoke(stage.continuation().await).await;

    assert_eq!(first.result.as_ref().expect("it is handed on")["ending"], "continued", "{first:#?}");
    assert_eq!(second.result.as_ref().expect("it drains")["ending"], "drained", "{second:#?}");
    let examined = stage.lambda.invoke(&sample("doctor")).await;
    assert!(examined.result.is_ok(), "{examined:#?}");
    let seen: BTreeSet<String> = stage.all_aws_calls().await.into_iter().collect();
    assert_eq!(seen, allowed_calls());
}
