//! From the bus to the function: what is read, what is refused, and that nothing that failed is lost.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::aws::{Fault, Hook};
use spillway_bed::lambda::{Lambda, LambdaOptions};
use spillway_bed::pods::PodShape;
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, ended, fates, function, receipt, sample, spot_notice, world};

const SPOT: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_second_notice_after_a_freeze_is_drained_without_asking_eks_again() {
    let stage = Stage::set("thaw").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let first = stage.lambda.invoke(stage.interrupt(SPOT).await).await;
    assert!(first.result.is_ok(), "{first:#?}");
    let calls_of_the_first = stage.aws_calls().await;
    assert_eq!(calls_of_the_first, ["ec2:DescribeInstances", "eks:DescribeCluster", "events:PutEvents"]);
    let process = stage.lambda.process_ids();

    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(again.result.as_ref().expect("it drains")["node"], second.name);
    assert_eq!(stage.lambda.process_ids(), process, "the environment was thawed, not made again");
    assert_eq!(stage.aws_calls().await[3..], ["ec2:DescribeInstances", "events:PutEvents"], "no EKS call");
}

/// Somebody may invoke the function, and knows how a notice looks.
#[tokio::test]
async fn a_notice_that_claims_what_aws_does_not_is_ignored_and_touches_nothing() {
    let stage = Stage::set_in_group("claims", Hook::terminate("spillway")).await;
    stage.world.aws_side().put_group("claims-other", &[Hook::terminate("spillway")]).await.expect("the group is new");
    let genuine = stage.terminate().await;
    let sent = |minutes: i64| {
        let mut notice = genuine.clone();
        notice["time"] = json!((Timestamp::now() + SignedDuration::from_mins(minutes)).to_string());
        notice
    };
    let mut of_another = genuine.clone();
    of_another["detail"]["AutoScalingGroupName"] = json!("claims-other");
    for (notice, why) in [
        (of_another, "the notice is of a hook of Auto Scaling group claims-other, and instance "),
        (sent(6), "the notice is dated "),
        (sent(-49 * 60), "the notice is dated "),
    ] {
        let outcome = stage.lambda.invoke(&notice).await;
        let (ending, reason) = ended(&outcome);
        assert_eq!(ending, "ignored", "{outcome:#?}");
        assert!(reason.starts_with(why), "{reason}");
    }
    assert!(stage.is_untouched().await);
    let calls = stage.aws_calls().await;
    assert!(!calls.iter().any(|call| call.ends_with("CompleteLifecycleAction")), "{calls:?}");
    let drained = stage.lambda.invoke(genuine).await;
    assert_eq!(ended(&drained).0, "drained", "{drained:#?}");
}

#[tokio::test]
async fn a_cluster_that_moved_is_asked_for_again() {
    let stage = Stage::set("moved-endpoint").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let before = stage.through_proxy().await;
    let first = stage.lambda.invoke(stage.interrupt(SPOT).await).await;
    assert!(first.result.is_ok(), "{first:#?}");
    before.set_mode(Mode::Refuse).await.expect("the old endpoint is closed");
    let _after = stage.through_proxy().await;

    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(again.result.as_ref().expect("it drains")["ending"], "drained", "{again:#?}");
    let asked = &stage.aws_calls().await[3..];
    assert_eq!(asked, ["ec2:DescribeInstances", "eks:DescribeCluster", "events:PutEvents"]);
}

#[tokio::test]
async fn a_certificate_authority_that_was_rotated_is_asked_for_again() {
    let stage = Stage::set("rotated").await;
    let show = async |pem: &str| {
        let (key, cluster) = (stage.lambda.access_key_id(), &stage.world.cluster);
        let shown = stage.world.aws_side().override_endpoint(key, cluster, None, Some(&STANDARD.encode(pem))).await;
        shown.expect("EKS shows it");
    };
    let old = rcgen::generate_simple_self_signed(["old".to_owned()]).expect("a certificate").cert.pem();
    show(&old).await;

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    // It has met the API server with the old authority, and asks EKS again and again.
    stage.until_called("eks:DescribeCluster", 2).await;
    show(&std::fs::read_to_string(&stage.world.ca).expect("the authority")).await;

    let outcome = drain.await.expect("no panic");
    assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
}

#[tokio::test]
async fn the_same_event_twice_is_claimed_once_and_the_second_delivery_joins() {
    let mut stage = Stage::set("twice").await;
    let event = stage.interrupt(SPOT).await;

    let first = stage.lambda.invoke(&event).await;
    let second = stage.lambda.invoke(&event).await;

    assert_eq!(first.result.as_ref().expect("it drains")["ending"], "drained", "{first:#?}");
    assert_eq!(second.result.as_ref().expect("it joins")["ending"], "joined", "{second:#?}");
    let claims: Vec<String> =
        stage.requests().into_iter().filter(|request| request.starts_with("patch nodes")).collect();
    assert_eq!(claims.len(), 2);
    assert!(claims[0].ends_with("200") && claims[1].ends_with("422"), "{claims:?}");
}

#[tokio::test]
async fn a_notice_that_cannot_be_read_fails_and_its_text_is_kept() {
    let world = world().await;
    let lambda = function(world, "unreadable", &[]).await;
    let mut event = sample("spot-interruption");
    event["id"] = json!("unreadable-1");
    event["detail"]["instance-id"] = json!("i-not-an-id");

    let delivery = lambda.invoke_async(&event).await.expect("the queue works");

    let error = delivery.last.result.as_ref().expect_err("it fails");
    assert_eq!(error.error_type, "UnreadableNotice");
    assert_eq!(error.message, "cannot read the notice: at detail.instance-id: \"i-not-an-id\" is no instance id");
    let kept = world.aws_side().failures().await.expect("the failure queue");
    assert!(kept.iter().any(|text| text.contains("unreadable-1") && text.contains("i-not-an-id")), "{kept:?}");
}

#[tokio::test]
async fn a_payload_that_is_no_json_fails_and_says_where() {
    let lambda = function(world().await, "no-json", &[]).await;
    let outcome = lambda.invoke("{\"detail\": ").await;
    let error = outcome.result.expect_err("it fails");
    assert!(error.message.contains("EOF while parsing"), "{error}");
    // The function lives on.
    let next = lambda
        .invoke(json!({"id": "1", "time": "2026-11-21T00:00:00Z", "source": "s", "detail-type": "t", "detail": {}}));
    assert_eq!(next.await.result.expect("it is ignored")["ending"], "ignored");
}

#[tokio::test]
async fn a_notice_that_the_settings_ignore_is_ignored_without_a_call() {
    let world = world().await;
    let lambda = function(world, "switched-off", &[("SPILLWAY_DRAIN_ON", "terminate")]).await;
    let outcome = lambda.invoke(sample("spot-interruption")).await;
    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!(answer["ending"], "ignored");
    assert_eq!(answer["reason"], "neither DrainOn nor CordonOn names spot");
    let calls = world.aws_side().calls(Some(lambda.access_key_id())).await.expect("the journal");
    assert!(calls.is_empty(), "{calls:?}");
}

#[tokio::test]
async fn wrong_settings_stop_the_start_and_all_are_named() {
    let lambda =
        function(world().await, "wrong", &[("SPILLWAY_DRAIN_ON", "yes"), ("SPILLWAY_HOOK_MAX_WAIT_S", "1h")]).await;
    let outcome = lambda.invoke(sample("spot-interruption")).await;
    assert!(outcome.result.is_err());
    let logs = outcome.logs.join("\n");
    assert!(logs.contains("DrainOn is \\\"yes\\\"; it takes some of spot, capacity"), "{logs}");
    assert!(logs.contains("HookMaxWaitS is \\\"1h\\\"; it takes a whole number of seconds"), "{logs}");
}

#[tokio::test]
async fn an_instance_that_ec2_does_not_know_is_ignored() {
    let lambda = function(world().await, "unknown", &[]).await;
    let outcome = lambda.invoke(spot_notice("i-1234567890abcdef0", Timestamp::now())).await;
    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!(answer["reason"], "EC2 knows no instance i-1234567890abcdef0");
}

#[tokio::test]
async fn tags_that_name_two_clusters_are_refused_and_nothing_is_touched() {
    // AWS' own tag would decide.
    let tag = |cluster: &str| (format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned());
    let tags = [tag("bed"), tag("other")].into();
    let options = NodeOptions { cluster_tag: false, tags, ..NodeOptions::default() };
    let mut stage = Stage::set_with("two-clusters", options).await;

    let outcome = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await;

    let error = outcome.result.as_ref().expect_err("it fails");
    assert_eq!(error.error_type, "AmbiguousInstance");
    assert!(error.message.contains("name several clusters: bed, other"), "{error}");
    assert!(stage.requests().is_empty());
}

#[tokio::test]
async fn an_instance_without_a_clusters_tag_is_ignored_and_nothing_is_touched() {
    let mut stage = Stage::set_with("untagged", NodeOptions { cluster_tag: false, ..NodeOptions::default() }).await;

    let outcome = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await;

    assert_eq!(outcome.result.as_ref().expect("it is no failure")["ending"], "ignored");
    assert!(stage.requests().is_empty());
}

#[tokio::test]
async fn a_denied_call_names_the_permission_and_the_event_is_kept() {
    for (service, action) in [("ec2", "DescribeInstances"), ("eks", "DescribeCluster")] {
        let stage = Stage::set(&format!("denied-{service}")).await;
        let code = if service == "ec2" { "UnauthorizedOperation" } else { "AccessDeniedException" };
        let fault = Fault {
            status: Some(403),
            code: Some(code.to_owned()),
            message: Some("not authorized".to_owned()),
            ..Fault::of(stage.lambda.access_key_id(), service, action)
        };
        stage.world.aws_side().add_fault(&fault).await.expect("a fault");

        let delivery = stage.lambda.invoke_async(stage.interrupt(SPOT).await).await.expect("the queue works");

        let error = delivery.last.result.as_ref().expect_err("it fails");
        assert_eq!(error.error_type, "AwsDenied", "{error}");
        assert!(error.message.contains(&format!("the function's role lacks {service}:{action}")), "{error}");
        assert!(delivery.failure_record.is_some());
    }
}

/// As for the instances of an Availability Zone that is down.
#[tokio::test]
async fn a_node_is_drained_though_ec2_fails_for_its_instance() {
    let stage = Stage::set("zone-down").await;
    let clusters = [("SPILLWAY_CLUSTERS", stage.world.cluster.as_str())];
    let stage = stage.with_settings(&clusters).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let fault = Fault {
        status: Some(500),
        code: Some("InternalError".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "ec2", "DescribeInstances")
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");

    let receipt = receipt(&stage.lambda.invoke(stage.interrupt(SPOT).await).await);

    assert_eq!((&receipt["ending"], fates(&receipt)["clean"]), (&json!("drained"), 2), "{receipt:#}");
    assert_eq!(receipt["steps"][1]["step"], "found-by-node", "{receipt:#}");
}

#[tokio::test]
async fn a_notice_that_comes_after_its_node_has_gone_is_kept() {
    let stage = Stage::set_with("too-late", NodeOptions::default()).await;
    let late = spot_notice("i-00000000000000000", Timestamp::now() - Duration::from_secs(300));
    let mut gone = late;
    gone["detail"]["instance-id"] = json!(stage.node.instance_id);
    let nodes = kube::Api::<k8s_openapi::api::core::v1::Node>::all(stage.world.admin());
    nodes.delete(&stage.node.name, &kube::api::DeleteParams::default()).await.expect("it is deleted");
    spillway_bed::nodes::until_gone(&stage.world.admin(), &stage.node.name).await.expect("it goes");

    let outcome = stage.lambda.invoke(gone).await;

    assert_eq!(outcome.result.expect_err("it fails").error_type, "TooLate");
}

#[tokio::test]
async fn a_role_that_the_cluster_does_not_know_is_told_what_to_do() {
    let stage = Stage::set("stranger-role").await;
    let aws = stage.world.aws_side();
    let credentials = aws.credentials("somebody-else", "stranger-role").await.expect("credentials");
    let account = spillway_bed::lambda::Account {
        endpoint: stage.world.aws.clone(),
        region: stage.world.region.clone(),
        id: stage.world.account.clone(),
        credentials,
    };
    let lambda = Lambda::in_account(account, LambdaOptions::default());
    // Late, so that the window is short.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(115));

    let outcome = lambda.invoke(event).await;

    let error = outcome.result.expect_err("it fails");
    assert_eq!(error.error_type, "KubernetesDenied");
    assert!(
        error.message.contains("the cluster does not know the function's role: give it an access entry"),
        "{error}"
    );
}
