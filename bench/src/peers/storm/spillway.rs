//! A storm of Spillway's: the built function behind Lambda's asynchronous queue, a process for each notice that has a slot.

use std::time::Duration;

use futures_util::future::try_join_all;
use jiff::Timestamp;
use serde_json::Value;
use spillway_bed::BedError;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::lambda::{Lambda, LambdaOptions};

use super::super::figures::{Drained, evicted};
use super::super::fixture::{PeersFixture, Scene};
use super::results::Bucket;

/// The API server writes a request down when it has answered it.
const WRITTEN_DOWN: Duration = Duration::from_secs(10);
/// What a deployment ends with, and an operator may send.
const SELF_TEST: &str = include_str!("../../../../events/doctor.json");

/// The drain, and how many notices did not end in a drained node.
pub(super) async fn drain(
    fixture: &PeersFixture,
    scene: &Scene,
    limit: Option<usize>,
    ec2: Bucket,
) -> Result<(Drained, usize), BedError> {
    let world = &fixture.world;
    let options = LambdaOptions {
        function_name: scene.name.clone(),
        // So that each cold start can search its node there when EC2 throttles.
        env: [("SPILLWAY_CLUSTERS".to_owned(), world.cluster.clone())].into(),
        reserved_concurrency: limit,
        // Waits pass as in Lambda.
        wait_factor: 1.0,
        ..LambdaOptions::default()
    };
    let lambda = Lambda::start(world, options).await?;
    let aws = world.aws_side();
    aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&fixture.proxy.url()), None).await?;
    let describe = ("ec2", "DescribeInstances");
    aws.limit_calls(lambda.access_key_id(), describe, ec2.most, ec2.per_second).await?;
    let self_test: Value = serde_json::from_str(SELF_TEST).expect("a sample is JSON");
    lambda.invoke(&self_test).await;
    lambda.recycle();
    let mut notices = Vec::with_capacity(scene.nodes.len());
    for node in &scene.nodes {
        let id = format!("{}-{}", scene.name, node.instance_id);
        notices.push(aws.spot_notice(&id, &node.instance_id).await?);
    }

    let begin = Timestamp::now();
    let deliveries = try_join_all(notices.into_iter().map(|notice| lambda.invoke_async(notice))).await?;
    let end = Timestamp::now();

    let usage = lambda.usage().map_err(BedError::io("read what the function has used"))?;
    let failed = deliveries.iter().filter(|delivery| delivery.last.drained().is_err()).count();
    let mut audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/spillway-drain/{}", scene.name));
    let all = |requests: &[Request]| evicted(requests) >= scene.pods;
    let mut requests = match audit.clone().wait_until("all evictions in the audit log", WRITTEN_DOWN, all).await {
        Ok(requests) => requests,
        // A storm that has left pods is a result too.
        Err(_) => audit.requests()?,
    };
    requests.retain(|request| request.received >= begin);
    Ok((Drained { begin, end, requests, usage }, failed))
}
