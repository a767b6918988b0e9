//! Finding the node of an instance: by the names that EKS gives nodes, then by the provider id.

use std::ops::ControlFlow;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use spillway_core::instance::Instance;

use crate::kube::{ApiError, call, if_found, list};

/// How many nodes the search looks at in one request: 17 KB each and more, most of it the names of its images.
const PAGE: u32 = 100;

/// The instance's node, if it has one of the names that EKS gives nodes: a request for each.
pub(crate) async fn by_likely_names(nodes: &Api<Node>, instance: &Instance) -> Result<Option<Node>, ApiError> {
    for name in guesses(instance) {
        if let Some(node) = by_name(nodes, &name, instance).await? {
            return Ok(Some(node));
        }
    }
    Ok(None)
}

pub(crate) async fn find(nodes: &Api<Node>, instance: &Instance) -> Result<Option<Node>, ApiError> {
    if let Some(node) = by_likely_names(nodes, instance).await? {
        return Ok(Some(node));
    }
    match by_provider_id(nodes, instance).await? {
        Some(name) => by_name(nodes, &name, instance).await,
        None => Ok(None),
    }
}

/// The names that EKS gives nodes, most common first: the private DNS name; the bare instance
/// id; the instance id with the DNS name's domain (resource-based naming).
pub(super) fn guesses(instance: &Instance) -> Vec<String> {
    let id = instance.id.as_str();
    let dns_name = instance.private_dns_name.as_deref();
    let domain = dns_name.and_then(|name| name.split_once('.')).map(|(_, domain)| domain);
    let mut names: Vec<String> = dns_name.map(str::to_owned).into_iter().collect();
    names.push(id.to_owned());
    names.extend(domain.map(|domain| format!("{id}.{domain}")).filter(|name| Some(name.as_str()) != dns_name));
    names
}

pub(crate) async fn by_name(nodes: &Api<Node>, name: &str, instance: &Instance) -> Result<Option<Node>, ApiError> {
    let node = if_found(call(nodes.get(name)).await, "nodes")?;
    Ok(node.filter(|node| is_of(instance, node)))
}

pub(crate) fn is_of(instance: &Instance, node: &Node) -> bool {
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    provider_id.is_some_and(|provider_id| instance.is_named_by(provider_id))
}

/// A node as the search sees it: what else an answer holds is not kept.
#[derive(Deserialize)]
struct Found {
    metadata: FoundMetadata,
    #[serde(default)]
    spec: FoundSpec,
}

#[derive(Deserialize)]
struct FoundMetadata {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
struct FoundSpec {
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
}

/// The last resort, when no guess was right: page through all nodes. Provider ids have no field selector.
pub(super) async fn by_provider_id(nodes: &Api<Node>, instance: &Instance) -> Result<Option<String>, ApiError> {
    in_pages(nodes, ListParams::default(), |name, of_node| instance.is_named_by(of_node).then(|| name.to_owned())).await
}

/// Pages through the nodes of a list until one of them is it, by its name and its provider id.
pub(super) async fn in_pages<T>(
    nodes: &Api<Node>,
    which: ListParams,
    is_it: impl Fn(&str, &str) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let mut found = None;
    let see = |node: Found| {
        if let (Some(name), Some(provider_id)) = (&node.metadata.name, &node.spec.provider_id) {
            found = found.take().or_else(|| is_it(name, provider_id));
        }
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    // On the heap: rustc calculates the size of nested futures only to a certain depth.
    Box::pin(each_in_pages(nodes, which, see)).await?;
    Ok(found)
}

/// Pages through the nodes, or the `CSINode` objects, of a list until `see` has seen enough.
pub(super) async fn each_in_pages<R: Resource + Clone, K: DeserializeOwned>(
    nodes: &Api<R>,
    which: ListParams,
    mut see: impl FnMut(K) -> ControlFlow<()>,
) -> Result<(), ApiError> {
    let client = nodes.clone().into_client();
    let mut page = ListParams { limit: which.limit.or(Some(PAGE)), ..which };
    loop {
        let mut is_enough = false;
        let request = Request::new(nodes.resource_url()).list(&page);
        let list = list::each(&client, request, |node| is_enough |= see(node).is_break()).await?;
        match list.continue_.filter(|token| !token.is_empty() && !is_enough) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    fn instance(dns_name: Option<&str>) -> Instance {
        Instance { private_dns_name: dns_name.map(str::to_owned), ..test_support::instance() }
    }

    #[test]
    fn the_private_dns_name_is_the_first_guess() {
        assert_eq!(
            guesses(&instance(Some("ip-10-0-0-1.ec2.internal"))),
            ["ip-10-0-0-1.ec2.internal", "i-0123456789abcdef0", "i-0123456789abcdef0.ec2.internal"]
        );
        assert_eq!(
            guesses(&instance(Some("i-0123456789abcdef0.ec2.internal"))),
            ["i-0123456789abcdef0.ec2.internal", "i-0123456789abcdef0"]
        );
        assert_eq!(guesses(&instance(None)), ["i-0123456789abcdef0"]);
    }
}
