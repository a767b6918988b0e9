//! What a team sets for its own nodes, where the stack lets it: times by tags of the instance, what is done by a label.

use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, fates, receipt, world};

const WAIT: &str = "spillway:hook-max-wait-s";
const ACTION: &str = "spillway/action";

/// A node with that tag on its instance and that label, in a group with a terminate hook; its cluster's stack lets so much be
/// overridden.
async fn stage(name: &str, overridable: &str, tag: Option<&str>, label: Option<&str>) -> Stage {
    world().await.aws_side().put_group(name, &[Hook::terminate("spillway")]).await.expect("a group");
    let tags = tag.map(|value| (WAIT.to_owned(), value.to_owned())).into_iter().collect();
    let node = NodeOptions { group: Some(name.to_owned()), tags, ..NodeOptions::default() };
    let stage = Stage::set_with(name, node).await.with_settings(&[("SPILLWAY_OVERRIDABLE", overridable)]).await;
    if let Some(action) = label {
        stage.change_node(&json!({"metadata": {"labels": {ACTION: action}}})).await;
    }
    stage
}

/// Until when this invocation may drain, in seconds from the notice. Without a tag the invocation is over before the hook.
fn until_s(receipt: &Value) -> i64 {
    (receipt["window"]["end_ms"].as_i64().expect("there is one") + 500) / 1_000
}

fn ended<'a>(outcome: &'a Outcome, as_expected: &str) -> &'a Value {
    let answer = outcome.result.as_ref().expect("it works");
    assert_eq!(answer["ending"], as_expected, "{answer:#}");
    answer
}

#[tokio::test]
async fn a_tag_shortens_the_wait_of_a_hook_and_the_receipt_says_so() {
    let stage = stage("tag-shortens", "hook-max-wait", Some("60"), None).await;
    stage.deploy("web", 1, PodShape::default().grace(5)).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(&stage.name, "web", 1)).await.expect("the budget is new");
    pods::until_budget_sees(&client, &stage.name, "web", 1).await.expect("it counts");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let answer = ended(&outcome, "drained");
    assert_eq!((fates(answer)["forced"], until_s(answer)), (1, 60), "long before the stack's hour: {answer:#}");
    assert_eq!(
        answer["overrides"],
        json!([{"setting": "hook-max-wait", "value": "60", "from": format!("tag {WAIT}")}])
    );
    assert_eq!(answer["hook"]["state"], "completed");
}

#[tokio::test]
async fn a_tag_with_a_wrong_value_is_a_warning_and_the_stacks_value_holds() {
    let stage = stage("tag-wrong", "hook-max-wait", Some("1m"), None).await;
    stage.deploy("web", 1, PodShape::default()).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let answer = ended(&outcome, "drained");
    assert!(600 < until_s(answer) && answer["overrides"].is_null(), "{answer:#}");
    let warning = answer["warnings"][0].as_str().expect("it is there");
    assert!(warning.starts_with(&format!("the tag {WAIT} is \"1m\"; it takes a whole number of seconds")), "{warning}");
}

#[tokio::test]
async fn a_label_has_its_node_left_and_another_only_cordoned() {
    let left = stage("label-leaves", "action", None, Some("leave")).await;
    let answer = left.lambda.invoke(left.terminate().await).await;
    let answer = ended(&answer, "ignored");
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("spillway/action=leave")), "{answer:#}");
    assert_eq!(answer["hook"]["state"], "left");
    assert!(left.is_untouched().await);

    let mut cordoned = stage("label-cordons", "action", None, Some("cordon")).await;
    cordoned.deploy("web", 1, PodShape::default()).await;
    let outcome = cordoned.lambda.invoke(cordoned.terminate().await).await;
    let answer = ended(&outcome, "done");
    assert_eq!((&answer["decision"], &answer["hook"]["state"]), (&json!("cordon"), &json!("completed")), "{answer:#}");
    assert_eq!(
        answer["overrides"],
        json!([{"setting": "action", "value": "cordon", "from": format!("label {ACTION}")}])
    );
    // The instance has gone with its node by now.
    let requests = cordoned.requests();
    assert!(
        requests.iter().any(|request| request.starts_with("patch nodes ") && request.ends_with("200")),
        "{requests:#?}"
    );
    assert!(!requests.iter().any(|request| request.contains("pods/eviction")), "{requests:#?}");
}

#[tokio::test]
async fn a_label_with_a_wrong_word_changes_nothing_and_is_a_warning() {
    let stage = stage("label-wrong", "action", None, Some("Leave")).await;
    let outcome = stage.lambda.invoke(stage.terminate().await).await;
    let answer = ended(&outcome, "drained");
    assert_eq!(
        answer["warnings"],
        json!(["the label spillway/action is \"Leave\"; it takes drain, cordon or leave: the stack's setting holds"])
    );
}

#[tokio::test]
async fn by_default_neither_tag_nor_label_changes_anything() {
    let stage = stage("override-denied", "", Some("60"), Some("leave")).await;
    let outcome = stage.lambda.invoke(stage.terminate().await).await;
    let answer = ended(&outcome, "drained");
    assert!(600 < until_s(answer), "{answer:#}");
    assert_eq!((&answer["overrides"], &answer["warnings"]), (&Value::Null, &Value::Null));
    assert_eq!(receipt(&outcome)["decision"], "drain");
}
