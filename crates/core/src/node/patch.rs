//! JSON patches of a node: what they test and what they change.

use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation};
use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};

/// Names us in `managedFields`.
pub const FIELD_MANAGER: &str = "spillway";

pub type Path<'a> = &'a [&'a str];

/// Operations in their order: what is tested comes before what is changed.
#[derive(Debug, Default)]
pub struct Operations(Vec<PatchOperation>);

impl Operations {
    /// Passes only if the value is there. Null passes only where nothing stands. The API server compares a string as its JSON
    /// has it, with escapes for `&`, `<`, `>`, U+2028 and U+2029: a string that may have one of these is never equal. Provider ids,
    /// labels and taints cannot, and our annotation [avoids them](super::claim_annotation::ClaimAnnotation::text).
    pub fn test(&mut self, path: Path<'_>, value: impl Into<Value>) {
        let path = pointer(path);
        self.0.push(PatchOperation::Test(TestOperation { path, value: value.into() }));
    }

    /// Passes only if labels or annotations have what they were seen to have by that key. A JSON-patch test
    /// fails on a missing parent, so of a map that was not there it tests that it is still missing.
    pub fn test_entry(&mut self, map: &str, key: &str, seen: Option<&BTreeMap<String, String>>) {
        match seen {
            Some(entries) => self.test(&["metadata", map, key], entries.get(key).cloned()),
            None => self.test(&["metadata", map], Value::Null),
        }
    }

    pub fn add(&mut self, path: Path<'_>, value: impl Into<Value>) {
        let path = pointer(path);
        self.0.push(PatchOperation::Add(AddOperation { path, value: value.into() }));
    }

    /// Adds to labels or annotations, which a node that somebody made by hand may not have.
    pub fn add_entry(&mut self, map: &str, key: &str, value: &str, seen: Option<&BTreeMap<String, String>>) {
        if seen.is_none() {
            self.add(&["metadata", map], json!({}));
        }
        self.add(&["metadata", map, key], value);
    }

    /// Adds a taint to those that are there by now, so that nobody's is lost. Of a node that was seen to have none, what decides
    /// tests that.
    pub fn add_taint(&mut self, taint: &Taint, seen: &[Taint]) {
        if seen.is_empty() {
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
