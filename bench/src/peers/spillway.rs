//! Spillway's drain: the built function, a process for each notice, each started for it.

use futures_util::future::join_all;
use jiff::Timestamp;
use spillway_bed::BedError;
use spillway_bed::audit::AuditLog;
use spillway_bed::lambda::{Lambda, LambdaOptions, Outcome};

use super::figures::Drained;
use super::fixture::{PeersFixture, Scene};
use super::until_evicted;

pub(super) async fn drain(fixture: &PeersFixture, scene: &Scene) -> Result<Drained, BedError> {
    let world = &fixture.world;
    // The function's name is its session, by which the audit log knows it.
    let options = LambdaOptions { function_name: scene.name.clone(), ..LambdaOptions::default() };
    let lambda = Lambda::start(world, options).await?;
    let aws = world.aws_side();
    aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&fixture.proxy.url()), None).await?;
    let mut notices = Vec::with_capacity(scene.nodes.len());
    for node in &scene.nodes {
        let id = format!("{}-{}", scene.name, node.instance_id);
        notices.push(aws.spot_notice(&id, &node.instance_id).await?);
    }

    let begin = Timestamp::now();
    let outcomes = join_all(notices.into_iter().map(|notice| lambda.invoke(notice))).await;
    let end = Timestamp::now();

    let usage = lambda.usage().map_err(BedError::io("read what the function has used"))?;
    outcomes.iter().try_for_each(Outcome::drained)?;
    let audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/spillway-drain/{}", scene.name));
    let requests = until_evicted(audit, begin, scene).await?;
    Ok(Drained { begin, end, requests, usage })
}
