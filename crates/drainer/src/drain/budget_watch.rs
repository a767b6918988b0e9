//! Watches the PodDisruptionBudgets of namespaces in which a budget blocks a pod.
//!
//! Each watch occupies an HTTP/2 stream, so at most [`NAMESPACES_WATCHED`] namespaces are watched. In other namespaces, repeated
//! evictions show whether a budget still blocks (core's `drain/budgets.rs`).

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use kube::{Api, Client};
use spillway_core::kube::budget::DisruptionBudget;
use spillway_core::kube::change::Change;
use spillway_startup::logs::chain;

use crate::kube::watch::{Selection, Watch, WatchEvent};

/// Maximum number of namespaces whose budgets are watched.
pub(super) const NAMESPACES_WATCHED: usize = 3;

pub(crate) struct BudgetWatch {
    client: Client,
    watches: BTreeMap<String, Watch<DisruptionBudget>>,
    right: WatchRight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchRight {
    /// The API server has not answered 403 to a watch.
    Granted,
    /// The API server answered 403, so no watch is started again.
    Missing,
}

impl BudgetWatch {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, watches: BTreeMap::new(), right: WatchRight::Granted }
    }

    /// Starts a watch for each new namespace, up to [`NAMESPACES_WATCHED`] watches.
    pub(crate) fn watch(&mut self, namespaces: BTreeSet<&str>) {
        if self.right == WatchRight::Missing {
            return;
        }
        for namespace in namespaces {
            if self.watches.len() < NAMESPACES_WATCHED && !self.watches.contains_key(namespace) {
                let api = Api::namespaced(self.client.clone(), namespace);
                self.watches.insert(namespace.to_owned(), Selection { api, field_selector: None }.watch(None));
            }
        }
    }

    /// Returns the next change of a budget and the budget's namespace. Waits forever if no namespace is watched. Cancel safe.
    pub(crate) async fn next(&mut self) -> (String, Change<DisruptionBudget>) {
        loop {
            let (namespace, event) = self.next_of_any().await;
            let error = match event {
                WatchEvent::Changed(change) => return (namespace, change),
                WatchEvent::Begun => continue,
                WatchEvent::Interrupted(error) => error,
            };
            if error.code() == Some(403) {
                tracing::warn!(
                    error = chain(&error),
                    "cannot watch PodDisruptionBudgets (apply deploy/rbac.yaml); evicting the pods that they block is tried every few seconds"
                );
                self.right = WatchRight::Missing;
                self.watches.clear();
            } else {
                tracing::warn!(
                    error = chain(&error),
                    "the watch of the PodDisruptionBudgets of namespace {namespace} broke; watching again"
                );
            }
        }
    }

    async fn next_of_any(&mut self) -> (String, WatchEvent<DisruptionBudget>) {
        if self.watches.is_empty() {
            return std::future::pending().await;
        }
        let nexts = self.watches.iter_mut();
        let nexts = nexts.map(|(namespace, watch)| async move { (namespace.clone(), watch.next().await) }.boxed());
        let (next, ..) = select_all(nexts).await;
        next
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::test_support::api_server::status;
    use crate::test_support::context::{TestContext, client};
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn budgets_of_a_fourth_namespace_are_not_watched() {
        let begins = |namespace: &str| call(format!("GET /apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"));
        let context = TestContext::new(&[], ["a", "b", "c"].map(|namespace| begins(namespace).perhaps()), []);
        let mut watch = BudgetWatch::new(client(&context).await);
        for namespaces in [&["a"][..], &["a", "b", "c", "d"], &["d", "e"]] {
            watch.watch(namespaces.iter().copied().collect());
            assert!(timeout(Duration::from_secs(1), watch.next()).await.is_err(), "no answer yet");
        }
        assert_eq!(watch.watches.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn denied_budget_watch_is_not_repeated() {
        let refused = call("GET /apis/policy/v1/namespaces/a/poddisruptionbudgets");
        let refused = refused.says(403, status(403, "Forbidden", "poddisruptionbudgets"));
        let context = TestContext::new(&[], [refused], []);
        let mut watch = BudgetWatch::new(client(&context).await);
        for namespace in ["a", "b"] {
            watch.watch([namespace].into());
            assert!(timeout(Duration::from_mins(1), watch.next()).await.is_err(), "nothing is known");
        }
    }
}
