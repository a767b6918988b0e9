//! Hooks of instances whose node cannot be got at: left to their own timeout or answered as the setting says, and
//! always told.
//!
//! Reason: whole way.

use serde_json::{Value, json};
use spillway_bed::aws::{Hook, Instance, InstanceRequest, InstanceState};
use spillway_e2e::{function, the_one, world};

/// An instance that terminates, of a group with the hook `drain`, and its notice.
async fn terminating(name: &str, cluster: Option<&str>) -> (Instance, Value) {
    terminating_with(name, cluster, &[]).await
}

async fn terminating_with(name: &str, cluster: Option<&str>, tags: &[(&str, &str)]) -> (Instance, Value) {
    let aws = world().await.aws_side();
    aws.put_group(name, &[Hook::terminate("spillway")]).await.expect("a group");
    let (cluster, group) = (cluster.map(str::to_owned), Some(name.to_owned()));
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let instance = aws.run_instance(&InstanceRequest { cluster, group, tags, ..InstanceRequest::default() }).await;
    let instance = instance.expect("an instance");
    let event = the_one(aws.terminate(&instance.instance_id).await.expect("it terminates"));
    (instance, event)
}

async fn state(instance: &Instance) -> InstanceState {
    world().await.aws_side().instance(&instance.instance_id).await.expect("it is known")
}

#[tokio::test]
async fn the_hook_of_an_instance_in_no_cluster_gets_the_answer_of_the_setting() {
    let (instance, event) = terminating("without-node", None).await;
    let lambda = function(world().await, "without-node", &[("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")]).await;

    let outcome = lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("ignored"), &json!("completed")));
    let reason = format!(
        "instance {} has no tag that names an EKS cluster; lifecycle hook spillway of group without-node got CONTINUE",
        instance.instance_id
    );
    assert_eq!(answer["reason"], reason);
    assert_eq!(state(&instance).await.actions[0].result.as_deref(), Some("CONTINUE"));
}
