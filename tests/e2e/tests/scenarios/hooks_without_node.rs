//! Hooks of instances whose node cannot be got at: left to their own timeout or answered as the setting says, and
//! always told.

use std::time::Duration;

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use spillway_bed::aws::{Fault, Hook, Instance, InstanceRequest, InstanceState};
use spillway_bed::lambda::{Account, Lambda, LambdaOptions};
use spillway_e2e::{Stage, function, receipt, the_one, world};

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

/// A call of the function's that always fails.
async fn break_call(lambda: &Lambda, service: &str, action: &str, status: u16, code: &str) {
    let fault = Fault {
        status: Some(status),
        code: Some(code.to_owned()),
        message: Some("made by the test".to_owned()),
        ..Fault::of(lambda.access_key_id(), service, action)
    };
    world().await.aws_side().add_fault(&fault).await.expect("a fault");
}

#[tokio::test]
async fn the_hook_of_an_instance_in_no_cluster_is_left_and_that_is_said() {
    let (instance, event) = terminating("not-kubernetes", None).await;
    let lambda = function(world().await, "not-kubernetes", &[]).await;

    let outcome = lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("ignored"), &json!("left")));
    let reason = format!(
        "instance {} has no tag that names an EKS cluster; its lifecycle hook spillway of group not-kubernetes is left to \
         its own timeout",
        instance.instance_id
    );
    assert_eq!(answer["reason"], reason);
    let state = state(&instance).await;
    assert_eq!((state.lifecycle_state.as_deref(), &state.actions[0].result), (Some("Terminating:Wait"), &None));
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

#[tokio::test]
async fn the_hook_of_an_instance_that_ec2_does_not_know_gets_the_answer_of_the_setting() {
    let (instance, event) = terminating("unknown-to-ec2", None).await;
    let lambda = function(world().await, "unknown-to-ec2", &[("SPILLWAY_HOOKS_WITHOUT_NODE", "ABANDON")]).await;
    break_call(&lambda, "ec2", "DescribeInstances", 400, "InvalidInstanceID.NotFound").await;

    let outcome = lambda.invoke(event).await;

    let reason = outcome.result.as_ref().expect("it is no failure")["reason"].clone();
    let id = &instance.instance_id;
    assert_eq!(
        reason,
        format!("EC2 knows no instance {id}; lifecycle hook spillway of group unknown-to-ec2 got ABANDON")
    );
    assert_eq!(state(&instance).await.actions[0].result.as_deref(), Some("ABANDON"));
}

/// Another deployment drains that cluster's nodes, and would find its hook gone.
#[tokio::test]
async fn the_hook_of_an_instance_in_a_cluster_that_is_not_ours_is_left_to_who_acts_on_that_cluster() {
    let (instance, event) = terminating("other-cluster", Some("other")).await;
    let env = [("SPILLWAY_CLUSTERS", "bed"), ("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")];
    let lambda = function(world().await, "other-cluster", &env).await;

    let outcome = lambda.invoke(event).await;

    let reason = "cluster other is not one of those that Clusters names; its lifecycle hook spillway of group \
                  other-cluster is left to its own timeout";
    assert_eq!(outcome.result.as_ref().expect("it is no failure")["reason"], reason);
    assert_eq!(state(&instance).await.actions[0].result, None);
}

#[tokio::test]
async fn the_hook_of_an_instance_whose_cluster_eks_does_not_show_us_gets_the_answer_and_the_notice_fails() {
    for (name, status, code, error_type) in [
        ("no-such-cluster", 404, "ResourceNotFoundException", "ClusterUnknown"),
        ("hidden-cluster", 403, "AccessDeniedException", "AwsDenied"),
    ] {
        let (instance, event) = terminating(name, Some("bed")).await;
        let lambda = function(world().await, name, &[("SPILLWAY_HOOKS_WITHOUT_NODE", "ABANDON")]).await;
        break_call(&lambda, "eks", "DescribeCluster", status, code).await;

        let outcome = lambda.invoke(event).await;

        assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, error_type);
        let receipt = receipt(&outcome);
        assert_eq!((&receipt["hook"]["state"], &receipt["hook"]["result"]), (&json!("completed"), &json!("ABANDON")));
        let reason = receipt["reason"].as_str().expect("a reason");
        assert!(reason.ends_with(&format!("; lifecycle hook spillway of group {name} got ABANDON")), "{reason}");
        assert_eq!(state(&instance).await.actions[0].result.as_deref(), Some("ABANDON"));
    }
}

#[tokio::test]
async fn the_hook_of_an_instance_whose_cluster_does_not_let_us_in_gets_the_answer_and_the_notice_fails() {
    let stage = Stage::set_in_group("shut-out", Hook::terminate("spillway")).await;
    let world = stage.world;
    let credentials = world.aws_side().credentials("somebody-else", "shut-out").await.expect("credentials");
    let (endpoint, region, id) = (world.aws.clone(), world.region.clone(), world.account.clone());
    let env = [("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE"), ("SPILLWAY_HOOK_MAX_WAIT_S", "60")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = LambdaOptions { env, ..LambdaOptions::default() };
    let lambda = Lambda::in_account(Account { endpoint, region, id, credentials }, options);
    let mut event = stage.terminate().await;
    // A 401 is asked for again for as long as the setting lets a hook be held: a minute, the least that it takes. The
    // notice is late, so that twenty seconds of it are left. Auto Scaling waits longer for the answer.
    let late = Timestamp::now() - Duration::from_secs(40);
    event["time"] = json!(late.round(Unit::Second).expect("a time of these days").to_string());

    let outcome = lambda.invoke(event).await;

    assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, "KubernetesDenied");
    let reason = receipt(&outcome)["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.ends_with("; lifecycle hook spillway of group shut-out got CONTINUE"), "{reason}");
    let instance = world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
}

#[tokio::test]
async fn the_hook_of_an_instance_in_two_clusters_gets_the_answer_and_the_notice_fails() {
    // AWS' own tag would decide.
    let tags = ["bed", "other"].map(|cluster| (format!("kubernetes.io/cluster/{cluster}"), "owned"));
    let tags = tags.each_ref().map(|(key, value)| (key.as_str(), *value));
    let (instance, event) = terminating_with("in-two", None, &tags).await;
    let lambda = function(world().await, "in-two", &[("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")]).await;

    let outcome = lambda.invoke(event).await;

    assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, "AmbiguousInstance");
    assert_eq!(state(&instance).await.actions[0].result.as_deref(), Some("CONTINUE"));
}

/// An instance refresh has given it another root volume, and what bootstraps it is not through.
#[tokio::test]
async fn a_launch_hook_that_is_left_to_others_is_not_answered_when_its_instance_is_in_no_cluster() {
    let (name, aws) = ("others-launch", world().await.aws_side());
    aws.put_group(name, &[Hook::launch("bootstrap")]).await.expect("a group");
    let request = InstanceRequest { cluster: None, group: Some(name.to_owned()), ..InstanceRequest::default() };
    let launched = aws.launch(&request).await.expect("an instance");
    let mut event = the_one(launched.delivered);
    event["detail"]["Action"] = json!("ReplaceRootVolume");
    let lambda = function(world().await, name, &[("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")]).await;

    let outcome = lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("ignored"), &json!("left")), "{answer:#}");
    let action = &state(&launched.instance).await.actions[0];
    assert_eq!((&action.result, action.heartbeats), (&None, 0));
}
