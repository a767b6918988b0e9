//! Nodes that are given back: after a rebalance recommendation that nothing followed, after a reboot, after a stop; and
//! nodes whose instance is down for longer.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::{NodeOptions, kubelet, nodes};
use spillway_e2e::maintenance::Maintenance;
use spillway_e2e::{Stage, ended, function, receipt, sample, the_one, world};

/// A stage with a node of its own, and a function with such settings.
async fn stage(name: &str, spot: bool, settings: &[(&str, &str)]) -> Stage {
    let env = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let stage = Stage::set_with(name, NodeOptions { spot, ..NodeOptions::default() }).await;
    stage.with_function(LambdaOptions { env, ..LambdaOptions::default() }).await
}

fn given_back(stage: &Stage, why: &str) -> (String, String) {
    ("done".to_owned(), format!("node {} is given back to use: {why}", stage.node.name))
}

/// The `time` of a rebalance recommendation whose hour ends in five seconds.
fn almost_over() -> String {
    let sent = Timestamp::now() - SignedDuration::from_secs(3595);
    sent.round(Unit::Second).expect("a time of these days").to_string()
}

/// A rebalance recommendation that arrives late, and is undone.
async fn rebalanced(name: &str) -> Stage {
    let stage = stage(name, true, &[("SPILLWAY_DRAIN_ON", "spot,rebalance")]).await;
    let mut notice = sample("rebalance-recommendation");
    notice["id"] = json!("rebalance");
    notice["time"] = json!(almost_over());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    let drained = stage.notify(&notice).await;
    assert_eq!(ended(&drained).0, "drained", "{drained:#?}");
    assert!(stage.is_cordoned().await);
    stage
}

#[tokio::test]
async fn a_rebalance_recommendation_that_nothing_followed_is_undone() {
    let stage = rebalanced("nothing-followed").await;

    let checked = stage.lambda.invoke(stage.fired().await).await;

    assert_eq!(ended(&checked), given_back(&stage, "no interruption has followed the rebalance recommendation"));
    assert!(stage.is_untouched().await);
    assert_eq!(receipt(&checked)["notice"]["event_id"], "rebalance", "its receipts are found together");
}

#[tokio::test]
async fn a_rebalance_recommendation_that_an_interruption_followed_is_not_undone() {
    let stage = rebalanced("followed").await;
    stage.lambda.invoke(stage.interrupt(Duration::from_mins(2)).await).await;

    let checked = stage.lambda.invoke(stage.fired().await).await;

    let (ending, reason) = ended(&checked);
    assert_eq!(ending, "ignored");
    let held = format!("node {} is not given back: it is claimed for the spot interruption", stage.node.name);
    assert!(reason.starts_with(&held), "{reason}");
    assert!(stage.is_cordoned().await);
}

/// Its cordon is theirs; what we put on it beside that, nobody else would take off.
#[tokio::test]
async fn a_node_that_somebody_else_had_cordoned_loses_our_marks_and_stays_cordoned() {
    let settings =
        [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_TAINTS", "spillway"), ("SPILLWAY_LOAD_BALANCERS", "exclude")];
    let stage = stage("cordoned-before", true, &settings).await;
    stage.change_node(&json!({"spec": {"unschedulable": true}})).await;
    let mut notice = sample("rebalance-recommendation");
    notice["time"] = json!(almost_over());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    let cordoned = stage.notify(&notice).await;
    assert_eq!(ended(&cordoned).0, "done", "{cordoned:#?}");
    let ours = async || stage.taints().await.iter().any(|taint| taint.starts_with("spillway/"));
    assert!(ours().await, "{:?}", stage.taints().await);

    let checked = stage.lambda.invoke(stage.fired().await).await;

    let reason = format!(
        "nothing of ours is left on node {}: no interruption has followed the rebalance recommendation; somebody else had \
         cordoned it before; the cordon stays",
        stage.node.name
    );
    assert_eq!(ended(&checked), ("done".to_owned(), reason));
    let node = stage.node_now().await;
    assert!(!node.annotations().contains_key("spillway/claim"), "{:?}", node.annotations());
    assert!(!node.labels().keys().any(|label| label.contains("exclude-from")), "{:?}", node.labels());
    assert!(!ours().await, "{:?}", stage.taints().await);
    assert!(stage.is_cordoned().await);
}

#[tokio::test]
async fn a_node_that_was_rebooted_is_given_back_and_one_that_was_not_is_looked_for_again() {
    let stage = stage("rebooted", false, &[("SPILLWAY_MAINTENANCE_LEAD_S", "3600")]).await;
    let (aws, client) = (stage.world.aws_side(), stage.world.admin());
    // Once it has started, it is looked for only ten minutes later.
    let starts = Timestamp::now() + SignedDuration::from_secs(25);
    let notice = Maintenance::of(&stage.node.instance_id, starts).notice("reboot");
    assert_eq!(ended(&stage.notify(&notice).await).0, "drained");

    // At its start it has not been rebooted.
    let first = stage.lambda.invoke(stage.fired().await).await;

    let (ending, reason) = ended(&first);
    assert_eq!(ending, "continued", "{reason}");
    let waits =
        format!("node {} is not given back yet: it has not rebooted; it is looked for again at", stage.node.name);
    assert!(reason.starts_with(&waits), "{reason}");
    assert!(stage.is_cordoned().await);
    let next = aws.schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there").remove(0);
    assert!((next.at - starts).total(Unit::Second).expect("seconds") >= 600.0, "ten minutes later: {next:?}");

    let boot = nodes::boot_id(&client, &stage.node.name).await.expect("it has one");
    aws.reboot(&stage.node.instance_id).await.expect("it reboots");
    nodes::until_rebooted(&client, &stage.node.name, &boot).await.expect("it comes back");
    let second = stage.lambda.invoke(next.input).await;

    assert_eq!(ended(&second), given_back(&stage, "it has rebooted"));
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn a_node_whose_instance_stopped_and_runs_again_is_given_back_when_it_is_ready() {
    let stage = stage("stop-start", false, &[]).await;
    let aws = stage.world.aws_side();
    let stopping = aws.stop(&stage.node.instance_id).await.expect("it stops");
    let stopping = stopping.into_iter().find(|one| one.event["detail"]["state"] == "stopping").expect("it tells");
    assert_eq!(ended(&stage.lambda.invoke(stopping.event).await).0, "drained");
    assert!(stage.is_cordoned().await);

    let running = the_one(aws.start(&stage.node.instance_id).await.expect("it starts"));
    let undone = stage.lambda.invoke(running).await;

    assert_eq!(ended(&undone), given_back(&stage, "its instance runs again"));
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn a_node_that_does_not_come_back_in_time_is_told_as_a_failure() {
    let (name, world, options) = ("stopped-silent", world().await, NodeOptions::default());
    let instance = world.aws_side().run_instance(&world.instance_request(&options)).await.expect("it runs");
    // Its kubelet has not reported yet, and does not.
    let node = world.register(&instance, &options).await.expect("it joins");
    let audit = AuditLog::of_user_from_now(&world.audit_log, &format!("assumed-role/spillway-drain/{name}"));
    let audit = audit.expect("the audit log is there");
    let delivered = AtomicUsize::default();
    let stage =
        Stage { world, name: name.to_owned(), node, lambda: function(world, name, &[]).await, audit, delivered };
    let stage = stage.with_invocations_of(Duration::from_secs(15)).await;
    let notice = |state: &str| {
        let mut notice = sample(&format!("state-change-{state}"));
        notice["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time"));
        notice["detail"]["instance-id"] = json!(stage.node.instance_id);
        notice
    };
    let taken = stage.notify(&notice("stopping")).await;
    assert_eq!(ended(&taken).0, "drained", "{taken:#?}");
    let mut running = stage.delivered(&notice("running")).await;

    let waiting = stage.lambda.invoke(&running).await;
    assert_eq!(ended(&waiting).0, "continued", "the invocation is over, the time is not: {waiting:#?}");

    running["time"] = json!((Timestamp::now() - SignedDuration::from_mins(10)).round(Unit::Second).expect("a time"));
    // It was stopped before that.
    let mut claim: Value = serde_json::from_str(&stage.node_now().await.annotations()["spillway/claim"]).expect("JSON");
    claim["since"] = json!(Timestamp::now() - SignedDuration::from_mins(11));
    stage.change_node(&json!({"metadata": {"annotations": {"spillway/claim": claim.to_string()}}})).await;
    let given_up = stage.lambda.invoke(&running).await;
    let error = given_up.result.as_ref().expect_err("somebody has to look");
    assert_eq!(error.error_type, "NotBack");
    assert!(error.message.contains("stays cordoned and marked as ours, because it is not Ready"), "{error}");
}

#[tokio::test]
async fn an_instance_that_just_runs_costs_a_look_and_no_search() {
    let mut stage = stage("just-runs", false, &[]).await;
    let mut running = sample("state-change-running");
    running["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time of these days").to_string());
    running["detail"]["instance-id"] = json!(stage.node.instance_id);

    let ours = stage.notify(&running).await;

    let reason = format!("node {} is none that we took out of use", stage.node.name);
    assert_eq!(ended(&ours), ("ignored".to_owned(), reason));
    assert_eq!(stage.aws_calls().await, ["ec2:DescribeInstances", "eks:DescribeCluster"]);
    assert_eq!(stage.node_requests(), ["get 200"]);

    // One that has not joined has no node by any of the names that nodes have; no other name is looked for.
    let request = stage.world.instance_request(&NodeOptions::default());
    let instance = stage.world.aws_side().run_instance(&request).await.expect("it runs");
    running["detail"]["instance-id"] = json!(instance.instance_id);
    let not_joined = stage.notify(&running).await;

    assert_eq!(ended(&not_joined).0, "ignored", "{not_joined:#?}");
    assert_eq!(stage.node_requests()[1..], ["get 404", "get 404", "get 404"]);
}

#[tokio::test]
async fn a_node_with_another_root_volume_is_given_back_and_its_launch_hook_left_to_others() {
    let (name, world) = ("root-volume-left", world().await);
    let aws = world.aws_side();
    aws.put_group(name, &[Hook::launch("launch"), Hook::terminate("spillway")]).await.expect("the group is new");
    let options = NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() };
    let launched = aws.launch(&world.instance_request(&options)).await.expect("it is launched");
    let node = world.join(&launched.instance, &options).await.expect("it joins");
    let others = function(world, "launcher", &[("SPILLWAY_LAUNCH", "ABANDON"), ("SPILLWAY_HOOKS", "launch")]).await;
    assert_eq!(ended(&others.invoke(the_one(launched.delivered)).await).0, "done", "it is in service");
    let lambda = function(world, name, &[]).await;
    let audit = AuditLog::of_user_from_now(&world.audit_log, &format!("assumed-role/spillway-drain/{name}"));
    let audit = audit.expect("the audit log is there");
    let delivered = AtomicUsize::default();
    let stage = Stage { world, name: name.to_owned(), node, lambda, audit, delivered };
    let id = &stage.node.instance_id;

    let drained = stage.lambda.invoke(the_one(aws.replace_root_volume(id).await.expect("it is drained"))).await;
    assert_eq!(ended(&drained).0, "drained", "{drained:#?}");
    let schedules = aws.schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there");
    assert_eq!(schedules.len(), 1, "should the group not tell, it is looked: {schedules:?}");
    let replaced = aws.wait_for_delivery(id).await.expect("it tells").event;
    let undone = stage.lambda.invoke(replaced).await;

    let (ending, reason) = ended(&undone);
    let (done, given_back) = given_back(&stage, "its root volume is replaced");
    assert!(ending == done && reason.starts_with(&given_back), "{ending}: {reason}");
    assert!(stage.is_untouched().await);
    let instance = aws.instance(id).await.expect("it is known");
    assert_eq!(instance.actions.last().expect("it waits").result, None);
}

#[tokio::test]
async fn a_node_whose_instance_is_down_is_declared_out_of_service_until_it_is_back() {
    let stage = stage("out-of-service", false, &[("SPILLWAY_TAINTS", "out-of-service")]).await;
    let (aws, client) = (stage.world.aws_side(), stage.world.admin());
    let stopped = aws.stop(&stage.node.instance_id).await.expect("it stops").pop().expect("it tells");
    nodes::until_not_ready(&client, &stage.node.name).await.expect("its kubelet is silent");

    let declared = stage.lambda.invoke(stopped.event).await;

    let node = &stage.node.name;
    let reason = format!("node {node} is declared out of service: its instance is down, and it is not Ready");
    assert_eq!(ended(&declared), ("done".to_owned(), reason));
    let taints = stage.taints().await;
    assert!(taints.contains(&"node.kubernetes.io/out-of-service=spillway:NoExecute".to_owned()), "{taints:?}");
    assert!(taints.len() > 1, "the node controller's own are kept: {taints:?}");

    let running = the_one(aws.start(&stage.node.instance_id).await.expect("it starts"));
    stage.lambda.invoke(running).await;

    let taints = stage.taints().await;
    assert!(!taints.iter().any(|taint| taint.contains("out-of-service")), "{taints:?}");
}

/// Its kubelet is about to run the same pods again, and to mount their volumes.
#[tokio::test]
async fn an_instance_that_is_started_again_meanwhile_keeps_its_node_in_service() {
    let (rules, held) = (Rules::default(), Held::default());
    // EC2 is asked whose instance it is, and again right before the taint.
    rules.add(Rule::new("ec2:DescribeInstances", Which::Nth(2), Fault::Hold(Side::Before, held.clone())));
    let gateway = Gateway::before_aws(world().await, rules).expect("a gateway");
    let settings = [("SPILLWAY_TAINTS", "out-of-service"), ("AWS_ENDPOINT_URL", &gateway.url())];
    let mut stage = stage("started-meanwhile", false, &settings).await;
    let (aws, id) = (stage.world.aws_side(), stage.node.instance_id.clone());
    let stopped = aws.stop(&id).await.expect("it stops").pop().expect("it tells");
    nodes::until_not_ready(&stage.world.admin(), &stage.node.name).await.expect("its kubelet is silent");

    let (declared, ()) = tokio::join!(stage.lambda.invoke(stopped.event), async {
        held.reached().await;
        aws.start(&id).await.expect("it starts");
        held.release();
    });

    assert_eq!(ended(&declared), ("ignored".to_owned(), format!("instance {id} runs again")));
    assert!(!stage.node_requests().iter().any(|request| request.starts_with("patch")));
}

#[tokio::test]
async fn a_node_that_is_ready_or_whose_instance_runs_is_never_declared_out_of_service() {
    let stage = stage("in-service", false, &[("SPILLWAY_TAINTS", "out-of-service")]).await;
    let (aws, client) = (stage.world.aws_side(), stage.world.admin());
    let mut stopped = sample("state-change-stopped");
    stopped["detail"]["instance-id"] = json!(stage.node.instance_id);
    // So old that nothing is waited for.
    stopped["time"] = json!(
        (Timestamp::now() - SignedDuration::from_mins(10))
            .round(Unit::Second)
            .expect("a time of these days")
            .to_string()
    );
    let runs = stage.notify(&stopped).await;
    let reason = format!("instance {} is neither stopped nor terminated", stage.node.instance_id);
    assert_eq!(ended(&runs), ("ignored".to_owned(), reason));

    aws.stop(&stage.node.instance_id).await.expect("it stops");
    nodes::until_not_ready(&client, &stage.node.name).await.expect("its kubelet is silent");
    // Its kubelet reports again though EC2 says that it has stopped: as when the control plane has not missed it yet.
    kubelet::boot(&client, &stage.node.name).await.expect("it reports");
    nodes::until_ready(&client, &stage.node.name).await.expect("it is taken for Ready");
    let ready = stage.notify(&stopped).await;

    let reason = format!("node {} is Ready: what runs there has not stopped", stage.node.name);
    assert_eq!(ended(&ready), ("ignored".to_owned(), reason));
    assert!(stage.taints().await.is_empty());
}
