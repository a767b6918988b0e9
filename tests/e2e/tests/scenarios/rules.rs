//! Forged events on the bus.
//!
//! Reason: process.

use jiff::Timestamp;
use serde_json::json;
use spillway_e2e::{Stage, ended, sample, spot_notice};

/// Any principal with `events:PutEvents` can write these events.
#[tokio::test]
async fn forged_continuation_passes_no_rule_and_is_refused() {
    let stage = Stage::set("forged").await;
    for (name, key) in [("drain-continuation", "spillway-continuation"), ("undo-check", "spillway-undo-check")] {
        for detail_type in ["Spillway Drain Continuation", "Spillway Undo Check"] {
            let mut own = sample(name)[key].take();
            // A notice that would drain the node.
            own["notice"] = spot_notice(&stage.node.instance_id, Timestamp::now());
            own["stack"] = json!("spillway");
            let mut forged = sample("spot-interruption");
            (forged["source"], forged["detail-type"]) = (json!("spillway"), json!(detail_type));
            forged["detail"] = own.clone();
            assert!(stage.aws().send_notice(&forged).await.expect("the bus takes it").is_empty(), "{forged:#}");
            forged[key] = own;

            let (ending, reason) = ended(&stage.lambda.invoke(&forged).await);

            assert_eq!(ending, "ignored", "{reason}");
            let expected = format!("\"{detail_type}\" came over an event bus, where any principal may put events");
            assert!(reason.starts_with(&expected), "{reason}");
        }
    }
    assert!(stage.is_untouched().await);
    assert!(stage.aws_calls().await.is_empty());
}
