//! JSON patches of a node.

use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation};
use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};

/// Spillway's name in `managedFields`.
pub const FIELD_MANAGER: &str = "spillway";

pub type Path<'a> = &'a [&'a str];

/// Operations of a JSON patch in their order: tests before changes.
#[derive(Debug, Default)]
pub struct Operations(Vec<PatchOperation>);

impl Operations {
    /// Requires that the path has the value, or, for null, that the path is absent. The API server compares the escaped JSON of
    /// strings. Therefore a string with `&`, `<`, `>`, U+2028 or U+2029 is never equal. Provider ids, labels and taints have none
    /// of these characters, and our annotation [avoids them](super::claim_annotation::ClaimAnnotation::text).
    pub fn test(&mut self, path: Path<'_>, value: impl Into<Value>) {
        let path = pointer(path);
        self.0.push(PatchOperation::Test(TestOperation { path, value: value.into() }));
    }

    /// Requires that a label or annotation is as observed. If the node has no labels or annotations at all, requires that their
    /// map is absent, because a JSON-patch test fails on a missing parent.
    pub fn test_entry(&mut self, map: &str, key: &str, observed: Option<&BTreeMap<String, String>>) {
        match observed {
            Some(entries) => self.test(&["metadata", map, key], entries.get(key).cloned()),
            None => self.test(&["metadata", map], Value::Null),
        }
    }

    pub fn add(&mut self, path: Path<'_>, value: impl Into<Value>) {
        let path = pointer(path);
        self.0.push(PatchOperation::Add(AddOperation { path, value: value.into() }));
    }

    /// Adds a label or annotation. On a node without labels or annotations, such as one that was created by hand, the map is
    /// added first.
    pub fn add_entry(&mut self, map: &str, key: &str, value: &str, observed: Option<&BTreeMap<String, String>>) {
        if observed.is_none() {
            self.add(&["metadata", map], json!({}));
        }
        self.add(&["metadata", map, key], value);
    }

    /// Appends a taint, which keeps all other taints. If no taint was observed, the caller has to test that the node still has no
    /// taints.
    pub fn add_taint(&mut self, taint: &Taint, observed: &[Taint]) {
        if observed.is_empty() {
            self.add(&["spec", "taints"], json!([taint]));
        } else {
            self.add(&["spec", "taints", "-"], json!(taint));
        }
    }

    pub fn remove(&mut self, path: Path<'_>) {
        self.0.push(PatchOperation::Remove(RemoveOperation { path: pointer(path) }));
    }

    pub fn done(self) -> Patch {
        Patch(self.0)
    }
}

fn pointer(path: Path<'_>) -> PointerBuf {
    PointerBuf::from_tokens(path.iter().copied())
}
