//! The edges of a drain: no harm where nobody knows the deadline, no loop, no deletion that finds no stream.
//!
//! Reason: admission, API semantics.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use spillway_bed::aws::Hook;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, ended, fates, receipt, sample};

const QUICK: Duration = Duration::from_secs(1);

/// EC2 said so long ago that the instance stops, though it still says that it runs.
fn stopping(stage: &Stage, ago_s: i64) -> Value {
    let time = Timestamp::now() - SignedDuration::from_secs(ago_s);
    let mut notice = sample("state-change-stopping");
    notice["id"] = json!(format!("stopping-{}", stage.node.instance_id));
    notice["time"] = json!(time.round(Unit::Second).expect("a time of these days").to_string());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    notice
}

#[tokio::test]
async fn a_node_that_a_policy_does_not_let_us_cordon_is_emptied_all_the_same_if_its_instance_goes() {
    for (name, reason) in [("not-cordoned", None), ("not-cordoned-403", Some("Forbidden"))] {
        let stage = Stage::set(name).await;
        stage.deploy("web", 2, PodShape::default().exits_after(QUICK)).await;
        stage.refuse_changes_of_node(reason).await;

        let outcome = match reason {
            Some(_) => stage.lambda.invoke(stage.interrupt(Duration::from_secs(120)).await).await,
            None => stage.notify(&stopping(&stage, 0)).await,
        };

        let told = receipt(&outcome);
        assert_eq!((ended(&outcome).0.as_str(), fates(&told)["clean"]), ("drained", 2), "{told:#}");
        let not_cordoned = told["not_cordoned"].as_str().unwrap_or_default();
        assert!(not_cordoned.contains("nobody cordons here"), "{told:#}");
        assert!(told["steps"].as_array().is_some_and(|steps| steps.iter().all(|step| step["step"] != "claimed")));
        assert!(stage.is_untouched().await);
    }
}

/// Its own pods may run on the nodes that go.
#[tokio::test]
async fn a_webhook_on_nodes_that_is_down_keeps_no_pod_and_the_node_is_cordoned_when_it_is_back() {
    let mut stage = Stage::set("webhook-down").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(25))).await;
    stage.ask_webhook_that_is_down().await;
    let (lambda, notice) = (stage.lambda.clone(), stage.interrupt(Duration::from_secs(120)).await);
    let is_back = async {
        stage.until_evicted(2).await;
        assert!(stage.is_untouched().await);
        stage.ask_webhook_no_more().await;
    };

    let (outcome, ()) = tokio::join!(lambda.invoke(notice), is_back);

    let told = receipt(&outcome);
    assert_eq!((ended(&outcome).0.as_str(), fates(&told)["clean"]), ("drained", 2), "{told:#}");
    let without = outcome.logs.iter().find(|line| line.contains("evicting its pods anyway"));
    assert!(without.is_some_and(|line| line.contains("failed calling webhook")), "{outcome:#?}");
    assert!(stage.is_cordoned().await);
    assert!(told["not_cordoned"].is_null() && told["steps"].to_string().contains("claimed"), "{told:#}");
}

/// The garbage collector removes its pods by force a minute later, and their containers still have the rest of their grace.
#[tokio::test]
async fn of_a_node_that_somebody_deletes_in_mid_drain_no_pod_is_called_gone_that_may_still_run() {
    let mut stage = Stage::set_in_group("deleted-node", Hook::terminate("spillway")).await;
    // Longer than the garbage collector takes: it looks every 20 s, and waits for 40 s.
    stage.deploy("web", 1, PodShape::default().grace(90).exits_after(Duration::from_secs(300))).await;
    let (client, name, lambda) = (stage.world.admin(), stage.node.name.clone(), stage.lambda.clone());
    let notice = stage.terminate().await;
    let deleted = async {
        stage.until_evicted(1).await;
        Api::<Node>::all(client).delete(&name, &DeleteParams::default()).await.expect("it was there");
    };

    let (outcome, ()) = tokio::join!(lambda.invoke(notice), deleted);

    let told = receipt(&outcome);
    assert_eq!(
        (ended(&outcome).0.as_str(), fates(&told)),
        ("drained", [("unconfirmed".to_owned(), 1)].into()),
        "{told:#}"
    );
    assert_eq!(told["hook"]["state"], "completed", "{told:#}");
}
