//! All objects of a cluster, of every kind.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use kube::api::{DynamicObject, ListParams};
use kube::discovery::{ApiGroup, Discovery, verbs};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::Cluster;

/// Kinds that change without enrolling. The node that stays is compared apart.
const IGNORED: [&str; 3] = ["Event", "Lease", "Node"];

/// Labels, annotations and content by kind, namespace and name, without some namespaces.
pub(crate) async fn of(cluster: &Cluster, but: &[&str]) -> BTreeMap<String, Value> {
    let client = cluster.admin();
    let discovered = Discovery::new(client.clone()).run_aggregated().await.expect("the API server lists its kinds");
    let kinds = discovered.groups().flat_map(ApiGroup::recommended_resources);
    let kinds = kinds.filter(|(kind, can)| can.supports_operation(verbs::LIST) && !IGNORED.contains(&&*kind.kind));
    let lists = join_all(kinds.map(|(kind, _)| {
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
        async move { (kind.kind, api.list(&ListParams::default()).await.expect("a list")) }
    }));
    let objects = lists.await.into_iter().flat_map(|(kind, list)| list.into_iter().map(move |one| (kind.clone(), one)));
    let objects = objects.filter(|(kind, one)| {
        let namespace = if kind == "Namespace" { one.metadata.name.clone() } else { one.namespace() };
        !namespace.is_some_and(|name| but.contains(&name.as_str()))
    });
    objects
        .map(|(kind, one)| {
            (format!("{kind} {} {}", one.namespace().unwrap_or_default(), one.name_any()), content(&one))
        })
        .collect()
}

/// Content without the server's fields.
fn content(one: &DynamicObject) -> Value {
    let mut data = one.data.clone();
    if let Some(members) = data.as_object_mut() {
        members.remove("status");
    }
    json!([one.labels(), one.annotations(), data])
}

/// Fails with all differences and their places.
pub(crate) fn assert_same(now: &Value, before: &Value) {
    assert!(now == before, "{:#?}", json_patch::diff(before, now));
}
