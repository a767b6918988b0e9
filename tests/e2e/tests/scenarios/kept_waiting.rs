//! Hooks are kept waiting from early on: while nothing can be done about their nodes, and where little is to be done.

use std::time::Duration;

use spillway_bed::aws::{Fault, Hook};
use spillway_bed::lambda::Outcome;
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, receipt};

/// A stage whose hook runs out after ten seconds without a heartbeat.
async fn stage(name: &str) -> Stage {
    Stage::set_in_group(name, Hook::terminate("spillway").heartbeat_timeout(Duration::from_secs(10))).await
}

/// The ending, and what became of the hook.
fn ended(outcome: &Outcome) -> [String; 2] {
    let receipt = receipt(outcome);
    [&receipt["ending"], &receipt["hook"]["state"]].map(|field| field.as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_hook_is_kept_waiting_while_ec2_is_asked_again() {
    let stage = stage("slow-ec2").await;
    let fault = Fault {
        times: 3,
        delay_ms: Some(4500),
        status: Some(503),
        ..Fault::of(stage.lambda.access_key_id(), "ec2", "DescribeInstances")
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    assert_eq!(ended(&outcome), ["drained", "completed"], "{outcome:#?}");
}

#[tokio::test]
async fn a_hook_is_kept_waiting_while_its_node_cannot_be_cordoned() {
    let stage = stage("slow-cordon")
        .await
        .with_settings(&[("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "terminate")])
        .await;
    let proxy = stage.through_proxy().await;
    proxy.set_mode(Mode::Refuse).await.expect("the fault begins");
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");
    let event = stage.terminate().await;

    let (outcome, ()) = tokio::join!(stage.lambda.invoke(event), async {
        stage.until_held(4).await;
        proxy.set_mode(Mode::Pass).await.expect("the fault is over");
    });

    assert_eq!(ended(&outcome), ["done", "completed"], "{outcome:#?}");
}
