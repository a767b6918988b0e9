//! Maintenance that AWS calls off or puts off while its drain goes on.

use std::time::Duration;

use spillway_bed::NodeOptions;
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, fates, receipt};

/// A stage with a pod that its budget holds, whose function begins maintenance an hour ahead.
async fn stage(name: &str, timeout: Duration) -> Stage {
    let env = [("SPILLWAY_MAINTENANCE_LEAD_S".to_owned(), "3600".to_owned())].into();
    let stage = Stage::set_with(name, NodeOptions::default()).await;
    let stage = stage.with_function(LambdaOptions { env, timeout, ..LambdaOptions::default() }).await;
    stage.deploy("web", 1, PodShape::default()).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(name, "web", 1)).await.expect("the budget is new");
    pods::until_budget_sees(&client, name, "web", 1).await.expect("it counts");
    stage
}

fn drained_no_further(stage: &Stage) -> (String, String) {
    let node = &stage.node.name;
    let reason = format!(
        "node {node} was given back, or somebody uncordoned it, since its drain began: it is drained no further"
    );
    ("ignored".to_owned(), reason)
}

#[tokio::test]
async fn maintenance_that_is_called_off_while_it_is_drained_is_not_gone_on_with() {
    let mut stage = stage("off-meanwhile", Duration::from_secs(60)).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(1800));
    let (lambda, event) = (stage.lambda.clone(), stage.delivered(&maintenance.notice("announced")).await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let refused = stage.audit.wait_until("an eviction to be refused", Duration::from_secs(30), |requests| {
        requests.iter().any(|request| request.subresource == "eviction" && request.code == Some(429))
    });
    refused.await.unwrap_or_else(|error| panic!("{error}"));

    let closed = stage.notify(&maintenance.closed("closed")).await;
    let drain = drain.await.expect("no panic");

    assert_eq!(ended(&closed).0, "done", "{closed:#?}");
    assert_eq!(ended(&drain), drained_no_further(&stage), "{drain:#?}");
    assert_eq!(fates(&receipt(&drain)), [("stayed".to_owned(), 1)].into());
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn maintenance_that_is_put_off_while_it_is_drained_waits_for_its_new_time() {
    let stage = stage("off-till-later", Duration::from_secs(15)).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(1800));
    let first = stage.notify(&maintenance.notice("announced")).await;
    assert_eq!(ended(&first).0, "continued", "{first:#?}");
    let continuation = stage.continuation().await;
    let put_off = maintenance.moved_to(in_s(7 * 86_400));
    let moved = stage.notify(&put_off.notice("put-off")).await;
    assert_eq!(ended(&moved).0, "continued", "{moved:#?}");

    let second = stage.lambda.invoke(continuation).await;

    assert_eq!(ended(&second), drained_no_further(&stage), "{second:#?}");
    assert!(stage.is_untouched().await);
    let schedules = stage.world.aws_side().schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there");
    let name = format!("{}.{}", stage.node.instance_id, put_off.id);
    assert!(schedules.iter().any(|schedule| schedule.name == name), "it is drained then: {schedules:?}");
}
