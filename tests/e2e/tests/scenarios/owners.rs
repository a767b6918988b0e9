//! Whose node it is, and whether it is one to act on at all: what the instance's tags do not say, the
//! node's labels do.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_e2e::{Stage, receipt, spot_notice, world};

const SPOT: Duration = Duration::from_secs(120);

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

/// A stage whose node has that label and whose instance's tags name no owner.
async fn labelled(name: &str, label: &str, value: &str) -> Stage {
    let stage = Stage::set(name).await;
    stage.change_node(&json!({"metadata": {"labels": {label: value}}})).await;
    stage
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
async fn a_node_that_is_opted_out_is_not_touched() {
    let mut stage = labelled("opted-out", "spillway/ignore", "until-friday").await;

    let receipt = interrupted(&stage).await;

    assert_eq!(receipt["ending"], "ignored", "{receipt:#}");
    assert_eq!(receipt["reason"], format!("node {} has the label spillway/ignore", stage.node.name));
    assert_eq!(stage.node_requests(), ["patch 422", "get 200"]);
    let node = stage.node_now().await;
    assert!(!is_cordoned(&node) && !node.annotations().contains_key("spillway/claim"));
}

#[tokio::test]
async fn a_hook_of_a_node_that_is_opted_out_is_left_to_its_timeout() {
    let stage = Stage::set_in_group("opted-out-hook", Hook::terminate("spillway")).await;
    stage.change_node(&json!({"metadata": {"labels": {"spillway/ignore": ""}}})).await;

    let receipt = receipt(&stage.deliver(stage.terminate().await).await);

    assert_eq!((&receipt["ending"], &receipt["hook"]["state"]), (&json!("ignored"), &json!("left")), "{receipt:#}");
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.actions[0].result, None);
}

#[tokio::test]
async fn a_node_without_labels_can_be_claimed() {
    let mut stage = Stage::set("unlabelled").await;
    // A controller gives each new node two labels, once.
    let begin = Instant::now();
    let labels = loop {
        let labels = stage.node_now().await.labels().clone();
        if labels.contains_key("beta.kubernetes.io/os") {
            break labels;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "it has only {labels:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let none: Value = labels.into_keys().map(|label| (label, Value::Null)).collect();
    stage.change_node(&json!({"metadata": {"labels": none}})).await;
    assert_eq!(stage.node_now().await.metadata.labels, None);

    let receipt = interrupted(&stage).await;

    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    assert_eq!(stage.node_requests()[..3], ["patch 422", "get 200", "patch 200"]);
    assert!(is_cordoned(&stage.node_now().await));
}

#[tokio::test]
async fn only_nodes_that_the_selector_selects_are_drained_at_one_request_more() {
    let setting = [("SPILLWAY_NODE_SELECTOR", "team=shop,!legacy")];
    let mut selected = labelled("selected", "team", "shop").await.with_settings(&setting).await;
    let mut other = labelled("not-selected", "team", "search").await.with_settings(&setting).await;

    let (drained, ignored) = (interrupted(&selected).await, interrupted(&other).await);

    assert_eq!(drained["ending"], "drained", "{drained:#}");
    assert_eq!(selected.node_requests()[..2], ["get 200", "patch 200"]);
    assert_eq!(ignored["ending"], "ignored", "{ignored:#}");
    let why = format!("node {} does not have the labels that NodeSelector asks for", other.node.name);
    assert_eq!(ignored["reason"], why);
    assert_eq!(other.node_requests(), ["get 200"]);
}

#[tokio::test]
async fn an_owner_that_only_the_nodes_label_names_decides() {
    let owners = [
        ("eks.amazonaws.com/nodegroup", "blue", "belongs to a managed node group, and EKS drains it itself"),
        ("karpenter.sh/nodepool", "default", "belongs to Karpenter"),
        ("eks.amazonaws.com/compute-type", "auto", "belongs to EKS Auto Mode"),
        ("eks.amazonaws.com/compute-type", "fargate", "says that it is Fargate's"),
        ("eks.amazonaws.com/compute-type", "hybrid", "says that it is a hybrid node"),
    ];
    for (at, (label, value, why)) in owners.into_iter().enumerate() {
        let mut stage = labelled(&format!("owner-{at}"), label, value).await;

        let receipt = interrupted(&stage).await;

        assert_eq!(receipt["ending"], "ignored", "{receipt:#}");
        assert!(receipt["reason"].as_str().is_some_and(|reason| reason.contains(why)), "{receipt:#}");
        assert_eq!(stage.node_requests(), ["patch 422", "get 200"]);
        assert!(!is_cordoned(&stage.node_now().await));
    }
}

/// A tag that says that Karpenter manages an instance, which whoever may tag instances can write.
const KARPENTER: (&str, &str) = ("karpenter.sh/nodepool", "default");

#[tokio::test]
async fn on_an_instance_of_a_group_a_tag_that_says_karpenter_silences_nothing() {
    let mut stage = tagged("karpenter-grouped", &[KARPENTER], Some(&[])).await;

    let receipt = interrupted(&stage).await;

    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    let warning = "the tag karpenter.sh/nodepool says that Karpenter manages the instance, which is in Auto Scaling group \
                   karpenter-grouped: the tag is not believed, and the node's labels decide";
    assert_eq!(receipt["warnings"], json!([warning]));
    assert_eq!(stage.node_requests()[0], "patch 200", "no request comes before the claim");
}

#[tokio::test]
async fn on_an_instance_of_a_group_the_label_that_says_karpenter_still_decides() {
    let stage = tagged("karpenter-labelled", &[KARPENTER], Some(&[])).await;
    stage.change_node(&json!({"metadata": {"labels": {"karpenter.sh/nodepool": "default"}}})).await;

    let receipt = interrupted(&stage).await;

    assert_eq!(receipt["reason"], "the node belongs to Karpenter, which drains it itself", "{receipt:#}");
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn a_node_that_is_to_be_handed_to_karpenter_and_is_not_its_own_is_drained_with_a_warning() {
    let stage = tagged("karpenter-alone", &[KARPENTER], None).await;
    let mut stage = stage.with_settings(&[("SPILLWAY_KARPENTER", "nodeclaim")]).await;

    let receipt = interrupted(&stage).await;

    assert_eq!(
        (&receipt["ending"], &receipt["managed_by"]),
        (&json!("drained"), &json!("self-managed")),
        "{receipt:#}"
    );
    let warning = receipt["warnings"][0].as_str().expect("it is there");
    assert!(warning.ends_with("neither the label karpenter.sh/nodepool nor a NodeClaim: the tags are not believed"));
    assert_eq!(stage.node_requests()[..2], ["get 200", "patch 200"]);
}

#[tokio::test]
async fn a_node_of_a_node_group_that_only_its_label_names_is_drained_if_the_settings_say_so() {
    let stage = labelled("owner-drained", "eks.amazonaws.com/nodegroup", "blue").await;
    let mut stage = stage.with_settings(&[("SPILLWAY_MANAGED_NODE_GROUPS", "drain")]).await;

    let receipt = receipt(&stage.lambda.invoke(stage.interrupt(SPOT).await).await);

    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    assert_eq!(stage.node_requests()[..3], ["patch 422", "get 200", "patch 200"]);
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

#[tokio::test]
async fn a_managed_tag_with_a_value_asks_for_that_value() {
    let setting = [("SPILLWAY_MANAGED_TAG", "drainer=spillway")];
    let other = tagged("tag-other-value", &[("drainer", "nth")], Some(&[("drainer", "")])).await;
    let same = tagged("tag-same-value", &[("drainer", "nth")], Some(&[("drainer", "spillway")])).await;

    for (stage, ending) in [(other, "ignored"), (same, "drained")] {
        let stage = stage.with_settings(&setting).await;
        let receipt = interrupted(&stage).await;
        assert_eq!(receipt["ending"], ending, "{receipt:#}");
    }
}
