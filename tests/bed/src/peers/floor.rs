//! The bare evictions of all nodes, a process and a connection for each node: no cordon, no look, nothing else. It is no
//! drain, and no drain can be sooner.

use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::field::{Field, NAMESPACE, Scene};
use super::figures::Drained;
use super::until_evicted;
use crate::audit::AuditLog;
use crate::error::BedError;
use crate::measure::bare;
use crate::pods;

pub(super) async fn drain(field: &Field, scene: &Scene) -> Result<Drained, BedError> {
    let world = &field.world;
    let (program, token) = (bare::program()?, field.token(&scene.name).await?);
    let (client, endpoint) = (world.admin(), field.proxy.url());
    let pods = try_join_all(scene.nodes.iter().map(|node| pods::on_node(&client, &node.name))).await?;

    let begin = Timestamp::now();
    let evicted = pods.iter().map(|pods| bare::evict(&program, world, &endpoint, &token, pods));
    let bare = try_join_all(evicted).await?;
    let end = Timestamp::now();

    let user = format!("system:serviceaccount:{NAMESPACE}:{}", scene.name);
    let requests = until_evicted(AuditLog::of_user(&world.audit_log, &user), begin, scene).await?;
    Ok(Drained { begin, end, requests, usage: bare.into_iter().map(|one| one.usage).collect() })
}
