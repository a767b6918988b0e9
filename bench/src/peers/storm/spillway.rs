//! A storm of Spillway's: the built function behind Lambda's asynchronous queue, a process for each notice that has a slot.

use futures_util::future::try_join_all;
use jiff::Timestamp;
use serde_json::Value;
use spillway_bed::BedError;
use spillway_bed::audit::AuditLog;
use spillway_bed::lambda::{Lambda, LambdaOptions};

use super::super::figures::Drained;
use super::super::fixture::{PeersFixture, Scene};
use super::super::until_evicted;
use super::results::Limits;

/// What a deployment ends with, and an operator may send.
const SELF_TEST: &str = include_str!("../../../../events/doctor.json");

/// The drain, and how many notices did not end in a drained node.
pub(super) async fn drain(fixture: &PeersFixture, scene: &Scene, limits: Limits) -> Result<(Drained, usize), BedError> {
    let world = &fixture.world;
    let options = LambdaOptions {
        function_name: scene.name.clone(),
        // So that each cold start can search its node there when EC2 throttles.
        env: [("SPILLWAY_CLUSTERS".to_owned(), world.cluster.clone())].into(),
        reserved_concurrency: Some(limits.executions),
        // Waits pass as in Lambda.
        wait_factor: 1.0,
        ..LambdaOptions::default()
    };
    let lambda = Lambda::start(world, options).await?;
    let aws = world.aws_side();
    aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&fixture.proxy.url()), None).await?;
    let describe = ("ec2", "DescribeInstances");
    aws.limit_calls(lambda.access_key_id(), describe, limits.ec2.most, limits.ec2.per_second).await?;
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
    let audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/spillway-drain/{}", scene.name));
    let requests = until_evicted(audit, begin, scene).await?;
    Ok((Drained { begin, end, requests, usage }, failed))
}
