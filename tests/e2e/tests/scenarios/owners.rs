//! Nodes that the function may or may not drain, by labels and tags.
//!
//! Reason: API semantics, whole way.

use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_e2e::{Stage, ended, owned, spot_notice, until, world};

async fn interrupted(stage: &Stage) -> (String, String) {
    ended(&stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await)
}

#[tokio::test]
async fn node_without_labels_is_claimed() {
    let mut stage = Stage::set("unlabelled").await;
    // A controller gives each new node two labels, once.
    let labelled = async || stage.node_now().await.labels().contains_key("beta.kubernetes.io/os");
    until("the controller's labels", labelled).await;
    let labels = stage.node_now().await.labels().clone();
    let none: Value = labels.into_keys().map(|label| (label, Value::Null)).collect();
    stage.change_node(&json!({"metadata": {"labels": none}})).await;
    assert_eq!(stage.node_now().await.metadata.labels, None);

    assert_eq!(interrupted(&stage).await.0, "drained");

    assert_eq!(stage.node_requests()[..3], ["patch 422", "get 200", "patch 200"]);
    assert!(stage.is_cordoned().await);
}

#[tokio::test]
async fn managed_tag_limits_drains_to_its_instances_and_groups() {
    const KEY: &str = "aws-node-termination-handler/managed";
    /// Tags of an instance or of its group.
    type Tags = &'static [(&'static str, &'static str)];
    let cases: [(&str, Tags, Option<Tags>, bool, bool); 4] = [
        ("tag-instance", &[(KEY, "")], Some(&[]), true, false),
        ("tag-group", &[], Some(&[(KEY, "true")]), true, true),
        ("tag-nowhere", &[("team", "shop")], Some(&[("team", "shop")]), false, true),
        ("tag-no-group", &[], None, false, false),
    ];
    for (name, tags, group, drained, describes_tags) in cases {
        if let Some(tags) = group {
            let put = world().await.aws_side().put_tagged_group(name, &[Hook::terminate("spillway")], tags).await;
            put.expect("the group is new");
        }
        let group = group.map(|_| name.to_owned());
        let stage = Stage::set_with(name, NodeOptions { tags: owned(tags), group, ..NodeOptions::default() }).await;
        let mut stage = stage.with_settings(&[("SPILLWAY_MANAGED_TAG", KEY)]).await;

        let (ending, reason) = interrupted(&stage).await;

        assert_eq!(ending, if drained { "drained" } else { "ignored" }, "{name}: {reason}");
        let described = stage.aws_calls().await.contains(&"autoscaling:DescribeTags".to_owned());
        assert_eq!(described, describes_tags, "{name}");
        if !drained {
            let instance = &stage.node.instance_id;
            let expected = format!("neither instance {instance} nor its Auto Scaling group has the tag {KEY}, ");
            assert!(reason.starts_with(&expected), "{reason}");
            assert!(stage.node_requests().is_empty());
        }
    }
}
