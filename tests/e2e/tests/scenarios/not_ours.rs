//! Instances that start in clusters which are not ours: no failure, and next to no work. Lambda delivers each failure twice
//! more and rings the alarm, so what fails here does so for each instance that a neighbour launches.

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use spillway_bed::aws::{Fault, InstanceRequest};
use spillway_bed::lambda::{Account, Lambda, LambdaOptions};
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, ended, function, sample, world};

/// EC2 says that the stage's instance runs.
async fn runs(stage: &Stage) -> Value {
    let mut notice = sample("state-change-running");
    notice["id"] = json!(format!("running-{}", stage.name));
    notice["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time of these days").to_string());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    stage.delivered(&notice).await
}

#[tokio::test]
async fn an_instance_that_runs_in_a_cluster_that_does_not_let_us_in_is_ignored() {
    let stage = Stage::set("neighbour").await;
    let world = stage.world;
    let credentials = world.aws_side().credentials("somebody-else", "neighbour").await.expect("credentials");
    let (endpoint, region, id) = (world.aws.clone(), world.region.clone(), world.account.clone());
    let stranger = Lambda::in_account(Account { endpoint, region, id, credentials }, LambdaOptions::default());

    let outcome = stranger.invoke(runs(&stage).await).await;

    let why = "cluster bed does not let the function in, so that it has cordoned nothing there: it answers 401";
    assert_eq!(ended(&outcome), ("ignored".to_owned(), why.to_owned()));
    assert!(outcome.result.is_ok(), "{outcome:#?}");
}

#[tokio::test]
async fn an_instance_that_runs_in_a_cluster_that_eks_does_not_know_is_ignored_after_two_calls() {
    let stage = Stage::set("of-kops").await;
    let fault = Fault {
        status: Some(404),
        code: Some("ResourceNotFoundException".to_owned()),
        message: Some("No cluster found for name: bed.".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "eks", "DescribeCluster")
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");

    let outcome = stage.lambda.invoke(runs(&stage).await).await;

    let why = "EKS has no cluster bed in this account and Region: nothing was cordoned there";
    assert_eq!(ended(&outcome), ("ignored".to_owned(), why.to_owned()));
    assert_eq!(stage.aws_calls().await, ["ec2:DescribeInstances", "eks:DescribeCluster"]);
}

#[tokio::test]
async fn a_thousand_launches_of_foreign_instances_cost_an_ec2_call_each_and_no_metric() {
    const LAUNCHES: usize = 1000;
    let (world, name) = (world().await, "churn");
    let foreign = InstanceRequest { cluster: None, ..InstanceRequest::default() };
    let instance = world.aws_side().run_instance(&foreign).await.expect("an instance");
    let lambda = function(world, name, &[]).await;
    let mut notice = sample("state-change-running");
    notice["detail"]["instance-id"] = json!(instance.instance_id);
    let (mut metrics, mut bytes) = (0, 0);

    for launch in 0..LAUNCHES {
        notice["id"] = json!(format!("launch-{launch}"));
        notice["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time of these days").to_string());
        let outcome = lambda.invoke(&notice).await;
        assert_eq!(ended(&outcome).0, "ignored", "{outcome:#?}");
        metrics += outcome.logs.iter().filter(|line| line.contains("CloudWatchMetrics")).count();
        bytes += outcome.logs.iter().map(String::len).sum::<usize>();
    }

    println!("{} bytes of log a launch", bytes / LAUNCHES);
    assert_eq!(metrics, 0);
    let calls = world.aws_side().calls(Some(lambda.access_key_id())).await.expect("the journal is there");
    assert!(calls.iter().all(|call| call.action == "DescribeInstances"), "no other call is made");
    // They come faster here than EC2 takes: what it turns away is asked again.
    let answered = calls.iter().filter(|call| call.error_code.as_deref() != Some("RequestLimitExceeded")).count();
    assert_eq!(answered, LAUNCHES);
    let calls = calls.len();
    // At its end it costs nothing more unless the taint is wanted: of an instance that is down already no call is made.
    let mut down = sample("state-change-terminated");
    down["detail"]["instance-id"] = json!(instance.instance_id);
    assert_eq!(ended(&lambda.invoke(&down).await).0, "ignored");
    assert_eq!(world.aws_side().calls(Some(lambda.access_key_id())).await.expect("it is there").len(), calls);
}

#[tokio::test]
async fn a_node_whose_cluster_cannot_be_reached_when_it_runs_again_is_given_back_when_a_schedule_looks_again() {
    let stage = Stage::set("out-of-reach").await;
    let proxy = stage.through_proxy().await;
    let mut stopping = sample("state-change-stopping");
    stopping["time"] = json!(Timestamp::now().round(Unit::Second).expect("a time of these days").to_string());
    stopping["detail"]["instance-id"] = json!(stage.node.instance_id);
    assert_eq!(ended(&stage.notify(&stopping).await).0, "drained");
    proxy.set_mode(Mode::Refuse).await.expect("the fault begins");

    let first = runs(&stage).await;
    let unreached = stage.lambda.invoke(&first).await;

    let (ending, reason) = ended(&unreached);
    assert_eq!(ending, "continued", "{unreached:#?}");
    assert!(reason.starts_with("cluster bed could not be reached, and is tried again at "), "{reason}");
    let schedules = stage.world.aws_side().schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there");
    let [next] = &schedules[..] else { panic!("one look: {schedules:?}") };
    assert!(stage.is_cordoned().await);

    proxy.set_mode(Mode::Pass).await.expect("the fault ends");
    let looked = stage.lambda.invoke(&next.input).await;

    assert_eq!(ended(&looked).0, "done", "{looked:#?}");
    assert!(stage.is_untouched().await);
}
