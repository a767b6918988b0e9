//! Requests to the API server.

use std::fmt;

use http::{Method, Uri};
use serde_json::Value;

use super::store::Resource;
use crate::fact::{LeaveRequest, Method as LeaveMethod};
use crate::lambda::AttemptId;
use crate::plan::CLUSTERS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Patch,
    PatchStatus,
    Delete,
    Create,
    Evict,
    Other,
}

#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) by: AttemptId,
    pub(crate) cluster: usize,
    pub(super) verb: Verb,
    /// `None`: unknown to the API server.
    pub(super) resource: Option<Resource>,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Value,
    path: String,
}

impl ApiRequest {
    pub(crate) fn read((by, cluster): (AttemptId, usize), method: &Method, uri: &Uri, body: &[u8]) -> Self {
        let path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let (group, rest) = match path[..] {
            ["api", _, ref rest @ ..] => ("", rest),
            ["apis", group, _, ref rest @ ..] => (group, rest),
            _ => ("?", &path[..]),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) =
            (rest.first().copied().unwrap_or(""), rest.get(1).copied().unwrap_or(""), rest.get(2).copied());
        let query = form_urlencoded::parse(uri.query().unwrap_or("").as_bytes()).into_owned().collect::<Vec<_>>();
        let watches = query.iter().any(|(key, value)| key == "watch" && value == "true");
        let verb = match (method.as_str(), name, subresource) {
            ("GET", "", _) if watches => Verb::Watch,
            ("GET", "", _) => Verb::List,
            ("GET", _, None) => Verb::Get,
            ("PATCH", _, None) => Verb::Patch,
            ("PATCH", _, Some("status")) => Verb::PatchStatus,
            ("DELETE", _, None) => Verb::Delete,
            ("POST", "", _) => Verb::Create,
            ("POST", _, Some("eviction")) => Verb::Evict,
            _ => Verb::Other,
        };
        let resource = Resource::of(group, plural);
        let (name, path) = (name.to_owned(), uri.to_string());
        Self {
            by,
            cluster,
            verb,
            resource,
            namespace,
            name,
            query,
            body: serde_json::from_slice(body).unwrap_or_default(),
            path,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
    }

    /// Returns an eviction or deletion that is not a dry run.
    pub(crate) fn leave(&self) -> Option<LeaveRequest> {
        let method = match self.verb {
            Verb::Evict => LeaveMethod::Evict,
            Verb::Delete => LeaveMethod::Delete,
            _ => return None,
        };
        let options = self.delete_options();
        if !options["dryRun"].is_null() {
            return None;
        }
        let uid = options["preconditions"]["uid"].as_str().map(str::to_owned);
        Some(LeaveRequest { name: self.name.clone(), uid, grace_s: options["gracePeriodSeconds"].as_u64(), method })
    }

    /// Returns the options of a deletion or an eviction.
    pub(super) fn delete_options(&self) -> &Value {
        if self.verb == Verb::Evict { &self.body["deleteOptions"] } else { &self.body }
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a field in the field selector.
    pub(super) fn selected(&self, field: &str) -> Option<&str> {
        let selector = self.parameter("fieldSelector")?;
        selector.split(',').find_map(|term| term.strip_prefix(field)?.strip_prefix('='))
    }

    pub(super) fn plural(&self) -> &'static str {
        self.resource.map_or("", Resource::plural)
    }
}

impl fmt::Display for ApiRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} {}", self.verb, CLUSTERS[self.cluster], self.path)?;
        if self.body.is_null() { Ok(()) } else { write!(f, " {}", self.body) }
    }
}
