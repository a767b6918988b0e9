//! What each rule of the template lets through, on the bus: its own notices in all their forms, and no neighbour.
//!
//! Reason: process.

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_e2e::{Stage, ended, sample, spot_notice, world};

/// The rules that let an event through.
async fn rules(event: &Value) -> Vec<String> {
    let delivered = world().await.aws_side().send_notice(event).await.expect("the bus takes it");
    delivered.into_iter().map(|one| one.rule).collect()
}

/// Whoever may put events on the bus can write all of this.
#[tokio::test]
async fn what_looks_like_the_functions_own_passes_no_rule_and_is_refused_if_it_reaches_the_function_all_the_same() {
    let stage = Stage::set("forged").await;
    for (what, key) in [("drain-continuation", "spillway-continuation"), ("undo-check", "spillway-undo-check")] {
        for detail_type in ["Spillway Drain Continuation", "Spillway Undo Check"] {
            let mut own = sample(what)[key].take();
            // A notice for which the node would be drained.
            own["notice"] = spot_notice(&stage.node.instance_id, Timestamp::now());
            own["stack"] = json!("spillway");
            let mut forged = sample("spot-interruption");
            (forged["source"], forged["detail-type"]) = (json!("spillway"), json!(detail_type));
            forged["detail"] = own.clone();
            assert!(rules(&forged).await.is_empty(), "{forged:#}");
            forged[key] = own;

            let outcome = stage.lambda.invoke(&forged).await;

            let (ending, reason) = ended(&outcome);
            assert_eq!(ending, "ignored", "{outcome:#?}");
            let why = format!("\"{detail_type}\" came over an event bus, where any principal may put events");
            assert!(reason.starts_with(&why), "{reason}");
        }
    }
    assert!(stage.is_untouched().await);
    assert!(stage.aws_calls().await.is_empty(), "nothing was asked of AWS");
}
