//! Watches the PodDisruptionBudgets of the namespaces in which one blocks a pod.
//!
//! Nothing is requested before that, so that a drain without budgets costs nothing. What a change
//! means is decided in `budgets`.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, Client};

use crate::kube::watch::{Change, Selection, Watch};
use spillway_startup::logs::chain;

/// The watches of budgets, one for each namespace.
pub(crate) struct BudgetWatch {
    client: Client,
    watches: BTreeMap<String, Watch<PodDisruptionBudget>>,
    right: WatchRight,
}

/// Whether we may watch budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchRight {
    /// As far as we know.
    Granted,
    /// The API server said no. The evictions of pods that a budget blocks are tried now and then all the same.
    Missing,
}

impl BudgetWatch {
    /// No namespace is watched yet.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, watches: BTreeMap::new(), right: WatchRight::Granted }
    }

    /// Watches these namespaces too from now on.
    pub(crate) fn watch(&mut self, namespaces: BTreeSet<&str>) {
        if self.right == WatchRight::Missing {
            return;
        }
        for namespace in namespaces {
            if !self.watches.contains_key(namespace) {
                let api = Api::namespaced(self.client.clone(), namespace);
                let watch = Selection { api, field_selector: None }.watch(None);
                self.watches.insert(namespace.to_owned(), watch);
            }
        }
    }

    /// The next change and its namespace; never, while nothing is watched. Can be cancelled without
    /// losing one.
    pub(crate) async fn next(&mut self) -> (String, Change<PodDisruptionBudget>) {
        loop {
            let (namespace, change) = self.next_of_any().await;
            let Change::Interrupted(error) = &change else { return (namespace, change) };
            if error.code() == Some(403) {
                tracing::warn!(
                    error = chain(&error),
                    "cannot watch PodDisruptionBudgets (apply deploy/rbac.yaml); evicting the pods that they block is tried every few seconds"
                );
                self.right = WatchRight::Missing;
                self.watches.clear();
            } else {
                tracing::warn!(
                    namespace,
                    error = chain(&error),
                    "the watch of the PodDisruptionBudgets of namespace {namespace} broke; watching again"
                );
            }
        }
    }

    async fn next_of_any(&mut self) -> (String, Change<PodDisruptionBudget>) {
        if self.watches.is_empty() {
            return std::future::pending().await;
        }
        let nexts = self
            .watches
            .iter_mut()
            .map(|(namespace, watch)| async move { (namespace.clone(), watch.next().await) }.boxed());
        let (next, ..) = select_all(nexts).await;
        next
    }
}
