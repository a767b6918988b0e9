//! Whose node it is, and whether it is one to act on at all: what the instance's tags do not say, the
//! node's labels do.
//!
//! Reason: API semantics, whole way.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_e2e::{Stage, receipt, spot_notice, world};
use tokio::time::{sleep, timeout};

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

/// A stage whose instance has such tags, and is in a group that has the others.
async fn tagged(name: &str, tags: &[(&str, &str)], groups: Option<&[(&str, &str)]>) -> Stage {
    if let Some(groups) = groups {
        let group = world().await.aws_side().put_tagged_group(name, &[Hook::terminate("spillway")], groups).await;
        group.expect("the group is new");
    }
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Stage::set_with(name, NodeOptions { tags, group: groups.map(|_| name.to_owned()), ..NodeOptions::default() }).await
}

async fn interrupted(stage: &Stage) -> Value {
    receipt(&stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await)
}

#[tokio::test]
async fn a_node_without_labels_can_be_claimed() {
    let mut stage = Stage::set("unlabelled").await;
    // A controller gives each new node two labels, once.
    let labelled = async {
        loop {
            let labels = stage.node_now().await.labels().clone();
            if labels.contains_key("beta.kubernetes.io/os") {
                return labels;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let labels = timeout(Duration::from_mins(1), labelled).await.expect("it gets its labels");
    let none: Value = labels.into_keys().map(|label| (label, Value::Null)).collect();
    stage.change_node(&json!({"metadata": {"labels": none}})).await;
    assert_eq!(stage.node_now().await.metadata.labels, None);

    let receipt = interrupted(&stage).await;

    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    assert_eq!(stage.node_requests()[..3], ["patch 422", "get 200", "patch 200"]);
    assert!(is_cordoned(&stage.node_now().await));
}

#[tokio::test]
async fn with_a_managed_tag_only_instances_that_have_it_or_whose_group_has_it_are_drained() {
    const KEY: &str = "aws-node-termination-handler/managed";
    let setting = [("SPILLWAY_MANAGED_TAG", KEY)];
    let on_instance = tagged("tag-instance", &[(KEY, "")], Some(&[])).await.with_settings(&setting).await;
    let on_group = tagged("tag-group", &[], Some(&[(KEY, "true")])).await.with_settings(&setting).await;
    let nowhere = tagged("tag-nowhere", &[("team", "shop")], Some(&[("team", "shop")])).await;
    let nowhere = nowhere.with_settings(&setting).await;
    let no_group = tagged("tag-no-group", &[], None).await.with_settings(&setting).await;

    for (mut stage, drained, asks) in
        [(on_instance, true, false), (on_group, true, true), (nowhere, false, true), (no_group, false, false)]
    {
        let receipt = interrupted(&stage).await;
        assert_eq!(receipt["ending"], if drained { "drained" } else { "ignored" }, "{receipt:#}");
        let asked = stage.aws_calls().await.contains(&"autoscaling:DescribeTags".to_owned());
        assert_eq!(asked, asks, "{}", stage.name);
        if !drained {
            let instance = &stage.node.instance_id;
            let why = format!("neither instance {instance} nor its Auto Scaling group has the tag {KEY}, ");
            assert!(receipt["reason"].as_str().is_some_and(|reason| reason.starts_with(&why)), "{receipt:#}");
            assert!(stage.node_requests().is_empty());
        }
    }
}
