//! Lifecycle hooks of instances without a node in a cluster.
//!
//! Reason: whole way.

use serde_json::json;
use spillway_bed::aws::{Hook, InstanceRequest};
use spillway_e2e::{answer, function, the_one, world};

#[tokio::test]
async fn hook_without_a_cluster_gets_the_answer_of_the_setting() {
    let (name, aws) = ("without-node", world().await.aws_side());
    aws.put_group(name, &[Hook::terminate("spillway")]).await.expect("the group is new");
    let request = InstanceRequest { group: Some(name.to_owned()), ..InstanceRequest::default() };
    let id = aws.run_instance(&request).await.expect("an instance").instance_id;
    let event = the_one(aws.terminate(&id).await.expect("Auto Scaling terminates"));
    let lambda = function(world().await, name, &[("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")]).await;

    let outcome = lambda.invoke(event).await;

    let answer = answer(&outcome);
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("ignored"), &json!("completed")));
    let reason = "has no tag that names an EKS cluster; lifecycle hook spillway of group without-node got CONTINUE";
    assert_eq!(answer["reason"], format!("instance {id} {reason}"));
    let instance = aws.instance(&id).await.expect("the instance is known");
    assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
}
