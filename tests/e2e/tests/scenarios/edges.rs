//! Refused cordons: by a policy, and by an unreachable webhook.
//!
//! Reason: admission.

use std::time::Duration;

use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, ended, fates, notice, receipt};

#[tokio::test]
async fn refused_cordon_keeps_no_pod_of_an_instance_that_goes() {
    for (name, reason) in [("not-cordoned", None), ("not-cordoned-403", Some("Forbidden"))] {
        let stage = Stage::set(name).await;
        stage.deploy_quick("web", 2).await;
        stage.refuse_changes_of_node(reason).await;

        // EC2 still reports the instance as running after the notice of its stop.
        let outcome = match reason {
            Some(_) => stage.drain().await,
            None => stage.notify(&notice("state-change-stopping", &stage.node.instance_id)).await,
        };

        let receipt = receipt(&outcome);
        assert_eq!((&*ended(&outcome).0, fates(&receipt)["clean"]), ("drained", 2), "{receipt:#}");
        assert!(receipt["not_cordoned"].as_str().is_some_and(|cause| cause.contains("no cordons here")), "{receipt:#}");
        assert!(receipt["steps"].as_array().is_some_and(|steps| steps.iter().all(|step| step["step"] != "claimed")));
        assert!(stage.is_untouched().await);
    }
}

/// The webhook's own pods may run on nodes that go.
#[tokio::test]
async fn unreachable_webhook_keeps_no_pod_and_delays_the_cordon() {
    let stage = Stage::set("webhook-down").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(25))).await;
    stage.add_unreachable_webhook().await;
    let notice = stage.interrupt().await;

    let (outcome, ()) = tokio::join!(stage.lambda.invoke(notice), async {
        stage.until_evicted(2).await;
        assert!(stage.is_untouched().await);
        stage.remove_webhook().await;
    });

    let receipt = receipt(&outcome);
    assert_eq!((&*ended(&outcome).0, fates(&receipt)["clean"]), ("drained", 2), "{receipt:#}");
    let warning = outcome.logs.iter().find(|line| line.contains("evicting its pods anyway"));
    assert!(warning.is_some_and(|line| line.contains("failed calling webhook")), "{outcome:#?}");
    assert!(stage.is_cordoned().await);
    assert!(receipt["not_cordoned"].is_null() && receipt["steps"].to_string().contains("claimed"), "{receipt:#}");
}
