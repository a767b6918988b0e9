//! JSON patches of a node.

use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation};
use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};

/// Spillway's name in `managedFields`.
pub const FIELD_MANAGER: &str = "spillway";

pub type Path<'a> = &'a [&'a str];

/// Operations of a JSON patch: first tests, then changes.
#[derive(Debug, Default)]
pub struct Operations(Vec<PatchOperation>);

impl Operations {
    /// Adds a test that `path` has `value`; null means absent. `value` must not contain `&`, `<`, `>`, U+2028 or U+2029. The API
    /// server writes them as escapes such as `\u0026` before it compares, so the test would fail.
    pub fn test(&mut self, path: Path<'_>, value: impl Into<Value>) {
        let path = pointer(path);
        self.0.push(PatchOperation::Test(TestOperation { path, value: value.into() }));
    }

    /// Adds a test that the entry `key` of `map` (`labels` or `annotations`) is still the same as in `observed`. If `observed`
    /// is `None`, tests that the node has no such map.
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

    /// Adds a label or annotation to `map`. If `observed` is `None`, creates `map` first.
    pub fn add_entry(&mut self, map: &str, key: &str, value: &str, observed: Option<&BTreeMap<String, String>>) {
        if observed.is_none() {
            self.add(&["metadata", map], json!({}));
        }
        self.add(&["metadata", map, key], value);
    }

    /// Appends a taint. If `observed` is empty, the caller has to test that the node has no taints.
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
