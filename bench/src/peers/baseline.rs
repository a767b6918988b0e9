//! The evictions alone, of all nodes, a process and a connection for each node: no cordon, no look, nothing else. It is no
//! drain: a drain has to do as much, and more.

use futures_util::future::try_join_all;
use jiff::Timestamp;
use spillway_bed::audit::AuditLog;
use spillway_bed::{BedError, pods};

use super::figures::Drained;
use super::fixture::{NAMESPACE, PeersFixture, Scene};
use super::until_evicted;
use crate::measure::baseline;

pub(super) async fn drain(fixture: &PeersFixture, scene: &Scene) -> Result<Drained, BedError> {
    let world = &fixture.world;
    let (program, token) = (baseline::program()?, fixture.token(&scene.name).await?);
    let (client, endpoint) = (world.admin(), fixture.proxy.url());
    let pods = try_join_all(scene.nodes.iter().map(|node| pods::on_node(&client, &node.name))).await?;

    let begin = Timestamp::now();
    let evicted = pods.iter().map(|pods| baseline::evict(&program, world, &endpoint, &token, pods));
    let runs = try_join_all(evicted).await?;
    let end = Timestamp::now();

    let user = format!("system:serviceaccount:{NAMESPACE}:{}", scene.name);
    let requests = until_evicted(AuditLog::of_user(&world.audit_log, &user), begin, scene).await?;
    Ok(Drained { begin, end, requests, usage: runs.into_iter().map(|one| one.usage).collect() })
}
