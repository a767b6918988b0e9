//! Finds an instance's node, first by the usual names of EKS nodes, then by the provider id.

use std::ops::ControlFlow;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use spillway_core::instance::Instance;

use crate::kube::{ApiError, call, if_found, list};

/// Maximum number of nodes per page of a list.
const PAGE: u32 = 100;

/// Finds the node by the usual names of EKS nodes, with one request per name.
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

/// Returns the usual names of the instance's node, most common first. Leaves out an invalid private DNS name, because
/// the name becomes part of a URL.
pub(super) fn guesses(instance: &Instance) -> Vec<String> {
    let id = instance.id.as_str();
    let dns_name = instance.private_dns_name.as_deref().filter(|name| is_node_name(name));
    let domain = dns_name.and_then(|name| name.split_once('.')).map(|(_, domain)| domain);
    let mut names: Vec<String> = dns_name.map(str::to_owned).into_iter().collect();
    names.push(id.to_owned());
    names.extend(domain.map(|domain| format!("{id}.{domain}")).filter(|name| Some(name.as_str()) != dns_name));
    names
}

/// Returns `true` for a valid node name, which is a DNS subdomain (RFC 1123).
fn is_node_name(name: &str) -> bool {
    let is_label = |label: &str| {
        label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

pub(crate) async fn by_name(nodes: &Api<Node>, name: &str, instance: &Instance) -> Result<Option<Node>, ApiError> {
    let node = if_found(call(nodes.get(name)).await, "nodes")?;
    Ok(node.filter(|node| is_of(instance, node)))
}

pub(crate) fn is_of(instance: &Instance, node: &Node) -> bool {
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    provider_id.is_some_and(|provider_id| instance.is_named_by(provider_id))
}

/// Fields of a node that the search reads.
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

/// Finds the node's name by reading all nodes, because Kubernetes has no field selector for provider ids.
pub(super) async fn by_provider_id(nodes: &Api<Node>, instance: &Instance) -> Result<Option<String>, ApiError> {
    in_pages(nodes, ListParams::default(), |name, of_node| instance.is_named_by(of_node).then(|| name.to_owned())).await
}

/// Reads nodes page by page and passes each name and provider id to `is_it`. Returns the first result that is not `None`.
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
    // Boxed: rustc limits the depth of nested futures.
    Box::pin(each_in_pages(nodes, which, see)).await?;
    Ok(found)
}

/// Reads nodes or `CSINode` objects page by page until `see` returns [`ControlFlow::Break`].
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
    fn private_dns_name_is_the_first_guess() {
        assert_eq!(
            guesses(&instance(Some("ip-10-0-0-1.ec2.internal"))),
            ["ip-10-0-0-1.ec2.internal", "i-0123456789abcdef0", "i-0123456789abcdef0.ec2.internal"]
        );
        assert_eq!(
            guesses(&instance(Some("i-0123456789abcdef0.ec2.internal"))),
            ["i-0123456789abcdef0.ec2.internal", "i-0123456789abcdef0"]
        );
        for name in [None, Some("../pods"), Some("a b"), Some("a..b"), Some("-a"), Some("Up.ec2.internal"), Some("")] {
            assert_eq!(guesses(&instance(name)), ["i-0123456789abcdef0"], "{name:?}");
        }
    }
}
