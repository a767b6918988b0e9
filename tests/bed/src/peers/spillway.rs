//! Spillway's drain: the built function, a process for each notice, each started for it.

use futures_util::future::join_all;
use jiff::Timestamp;

use super::field::{Field, Scene};
use super::figures::Drained;
use super::until_evicted;
use crate::audit::AuditLog;
use crate::error::BedError;
use crate::lambda::{Lambda, LambdaOptions};
use crate::measure;

pub(super) async fn drain(field: &Field, scene: &Scene) -> Result<Drained, BedError> {
    let world = &field.world;
    // The function's name is its session, by which the audit log knows it.
    let options = LambdaOptions { function_name: scene.name.clone(), ..LambdaOptions::default() };
    let lambda = Lambda::start(world, options).await?;
    let aws = world.aws_side();
    aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&field.proxy.url()), None).await?;
    let mut notices = Vec::with_capacity(scene.nodes.len());
    for node in &scene.nodes {
        let id = format!("{}-{}", scene.name, node.instance_id);
        notices.push(measure::spot_notice(world, &id, &node.instance_id).await?);
    }

    let begin = Timestamp::now();
    let outcomes = join_all(notices.into_iter().map(|notice| lambda.invoke(notice))).await;
    let end = Timestamp::now();

    let usage = lambda.usage().map_err(BedError::io("read what the function has used"))?;
    for outcome in outcomes {
        let failed = |seen: String| BedError::NotMeasured { wanted: "a drain".to_owned(), seen };
        let answer = outcome.result.map_err(|error| failed(error.to_string()))?;
        if answer["ending"] != "drained" {
            return Err(failed(answer.to_string()));
        }
    }
    let audit = AuditLog::of_user(&world.audit_log, &format!("assumed-role/spillway-drain/{}", scene.name));
    let requests = until_evicted(audit, begin, scene).await?;
    Ok(Drained { begin, end, requests, usage })
}
