//! Faults between the function and its servers that no case of `each_fault` has.
//!
//! Reason: connection.

use std::collections::BTreeMap;
use std::net::TcpListener;

use jiff::Timestamp;
use serde_json::Value;
use spillway_bed::NodeOptions;
use spillway_bed::gateway::{Answer, Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, answer, assert_drained, spot_notice};

/// The connection of the list goes silent with the list: no ping is answered.
#[tokio::test]
async fn swallowed_first_answers_of_ec2_and_list_delay_the_drain() {
    let stage = Stage::set("swallowed").await;
    let aws = Gateway::before_aws(stage.world, Rules::default()).expect("a gateway");
    aws.rules().add(Rule::new("ec2:DescribeInstances", Which::Nth(1), Fault::Silence));
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", &aws.url()), ("SPILLWAY_STACK", "swallowed")]).await;
    stage.deploy_quick("web", 2).await;
    let (cluster, held) = (stage.through_gateway().await, Held::default());
    cluster.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::Instead, held.clone())));

    let (outcome, ()) = tokio::join!(stage.drain(), async {
        held.reached().await;
        cluster.network().drop_silently();
    });

    assert_drained(&outcome, 2);
    assert_eq!((aws.rules().struck(), cluster.rules().struck()), (1, 1), "{outcome:#?}");
}

#[tokio::test]
async fn goaway_moves_the_drain_to_another_connection() {
    let stage = Stage::set("goaway").await.with_own_stack().await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::GoAway));

    assert_drained(&stage.drain().await, 2);
    assert_eq!(gateway.network().connections(), 2);
}

#[tokio::test]
async fn mute_endpoint_has_eks_described_again() {
    let stage = Stage::set("mute-endpoint").await.with_own_stack().await;
    stage.deploy("web", 2, PodShape::default()).await;
    let (gateway, key) = (stage.gateway(), stage.lambda.access_key_id());
    // The kernel accepts connections, and the TLS handshake gets no answer.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("https://{}", mute.local_addr().expect("an address"));
    let shown = stage.aws().override_endpoint(key, &stage.world.cluster, Some(&endpoint), Some(&gateway.ca())).await;
    shown.expect("EKS shows the endpoint");

    let mut drain = std::pin::pin!(stage.drain());
    tokio::select! {
        outcome = &mut drain => panic!("EKS was not described again: {outcome:#?}"),
        () = stage.until_called("eks:DescribeCluster", 2) => {}
    }
    gateway.show(stage.world, key).await.expect("EKS shows the gateway");

    assert_drained(&drain.await, 2);
}

/// Counts of answers for all pods together.
fn answers(receipt: &Value) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        for (name, times) in pod["answers"].as_object().into_iter().flatten() {
            *sum.entry(name.clone()).or_default() += times.as_u64().unwrap_or_default();
        }
    }
    sum
}

#[tokio::test]
async fn each_answer_to_an_eviction_is_counted_by_name() {
    let stage = Stage::set("names").await.with_own_stack().await;
    // An answer counts only before the last pod's end.
    stage.deploy_quick("web", 8).await;
    let gateway = stage.through_gateway().await;
    let faults = [
        Fault::Answer(Answer::throttled(Some(1))),
        Fault::Answer(Answer::kubernetes(401)),
        Fault::Answer(Answer::kubernetes(403)),
        Fault::Answer(Answer::kubernetes(409)),
        Fault::Answer(Answer::kubernetes(503)),
        Fault::Answer(Answer::held_by("web")),
        Fault::Reset,
    ];
    for (n, fault) in faults.into_iter().enumerate() {
        gateway.rules().add(Rule::new("create pods/eviction", Which::Nth(n + 1), fault));
    }

    let outcome = stage.drain().await;

    assert_drained(&outcome, 8);
    let expected = [
        ("evicted", 8),
        ("forbidden", 1),
        ("blocked-by-budget", 1),
        ("no-answer", 1),
        ("refused", 1),
        ("server-error", 1),
        ("throttled", 1),
        ("unauthorized", 1),
    ];
    assert_eq!(answers(answer(&outcome)), expected.map(|(name, times)| (name.to_owned(), times)).into());
}

#[tokio::test]
async fn thawed_function_uses_no_connection_from_before_the_freeze() {
    let stage = Stage::set("dead-connections").await;
    let second = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    // The gateway keeps connections open, as AWS does. The AWS side behind it does not.
    let aws = Gateway::before_aws(stage.world, Rules::default()).expect("a gateway");
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", &aws.url()), ("SPILLWAY_STACK", "dead-connections")]).await;
    let cluster = stage.through_gateway().await;
    answer(&stage.drain().await);
    let process = stage.lambda.process_ids();

    let connections = || [&aws, &cluster].map(|gateway| gateway.network().connections());
    let before = connections();
    for gateway in [&aws, &cluster] {
        gateway.network().drop_silently();
    }
    let again = stage.lambda.invoke(spot_notice(&second.instance_id, Timestamp::now())).await;

    assert_eq!(answer(&again)["ending"], "drained", "{again:#?}");
    assert_eq!(stage.lambda.process_ids(), process, "the same process was thawed");
    assert_eq!(aws.network().swallowed(), 0, "requests to AWS on dead connections: {again:#?}");
    // All services share one connection.
    assert_eq!(connections(), before.map(|before| before + 1), "to AWS, and to the cluster: {again:#?}");
}
