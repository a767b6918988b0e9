//! JSON patches of a node: what they test, what they change, and how they are sent.

use std::collections::BTreeMap;

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PatchParams;
use kube::core::Status;
use serde_json::{Value, json};

use crate::kube::{ApiError, call, is_missing, is_of_admission};

/// Names us in `managedFields`.
pub(super) const FIELD_MANAGER: &str = "spillway";

/// A path into a node.
pub(super) type Path<'a> = &'a [&'a str];

/// Operations in their order: what is tested comes before what is changed.
#[derive(Debug, Default)]
pub(super) struct Operations(Vec<PatchOperation>);

impl Operations {
    /// Passes only if the value is there. Null passes only where nothing stands.
    pub(super) fn test(&mut self, path: Path<'_>, value: impl Into<Value>) {
        let path = pointer(path);
        self.0.push(PatchOperation::Test(TestOperation { path, value: value.into() }));
    }

    /// Passes only if labels or annotations have what they were seen to have by that key. A path through
    /// a map that is not there would fail, so then it is tested that it is not.
    pub(super) fn test_entry(&mut self, map: &str, key: &str, seen: Option<&BTreeMap<String, String>>) {
        match seen {
            Some(entries) => self.test(&["metadata", map, key], entries.get(key).cloned()),
            None => self.test(&["metadata", map], Value::Null),
        }
    }

    /// Adds, or replaces what is there.
    pub(super) fn add(&mut self, path: Path<'_>, value: impl Into<Value>) {
        let path = pointer(path);
        self.0.push(PatchOperation::Add(AddOperation { path, value: value.into() }));
    }

    /// Adds to labels or annotations, which a node that somebody made by hand may not have.
    pub(super) fn add_entry(&mut self, map: &str, key: &str, value: &str, seen: Option<&BTreeMap<String, String>>) {
        if seen.is_none() {
            self.add(&["metadata", map], json!({}));
        }
        self.add(&["metadata", map, key], value);
    }

    /// Takes away what is there.
    pub(super) fn remove(&mut self, path: Path<'_>) {
        self.0.push(PatchOperation::Remove(RemoveOperation { path: pointer(path) }));
    }

    /// The patch.
    pub(super) fn done(self) -> Patch {
        Patch(self.0)
    }
}

fn pointer(path: Path<'_>) -> PointerBuf {
    PointerBuf::from_tokens(path.iter().copied())
}

/// What became of a patch.
#[derive(Debug)]
pub(super) enum Patched {
    /// The node as it is now.
    Done(Box<ObjectMeta>),
    /// One of its tests failed: the node is not as it was seen.
    Refused(Box<Status>),
    /// There is no such node.
    NoNode,
}

/// Sends a patch.
pub(super) async fn send(nodes: &Api<Node>, name: &str, patch: Patch) -> Result<Patched, ApiError> {
    send_with(nodes, name, patch, PatchParams::default()).await
}

/// Sends a patch without effect.
pub(super) async fn send_dry(nodes: &Api<Node>, name: &str, patch: Patch) -> Result<Patched, ApiError> {
    send_with(nodes, name, patch, PatchParams { dry_run: true, ..PatchParams::default() }).await
}

async fn send_with(nodes: &Api<Node>, name: &str, patch: Patch, params: PatchParams) -> Result<Patched, ApiError> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..params };
    match call(nodes.patch_metadata(name, &params, &kube::api::Patch::Json::<()>(patch))).await {
        Ok(node) => Ok(Patched::Done(Box::new(node.metadata))),
        Err(ApiError::Refused(status)) if is_missing(&status, "nodes") => Ok(Patched::NoNode),
        Err(ApiError::Refused(status)) if status.code == 422 && !is_of_admission(&status) => {
            Ok(Patched::Refused(status))
        }
        Err(error) => Err(error),
    }
}
