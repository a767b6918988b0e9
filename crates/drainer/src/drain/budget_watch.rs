//! Watches the PodDisruptionBudgets of the namespaces in which one blocks a pod.
//!
//! Nothing is requested before that, so that a drain without budgets costs nothing. Each watch keeps a stream of the
//! connection for as long as it lasts: of more than a few namespaces the budgets are watched by one for the cluster. What a
//! change means is decided in core's `drain/budgets.rs`.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use kube::{Api, Client};
use spillway_core::drain::budgets::WatchScope;
use spillway_core::kube::budget::DisruptionBudget;
use spillway_core::kube::change::Change;
use spillway_startup::logs::chain;

use crate::kube::watch::{Selection, Watch, WatchEvent};

/// How many namespaces are watched one by one. Budgets block pods in few as a rule; a cluster may have thousands of budgets,
/// each of which changes with each of its pods.
pub(super) const NAMESPACES_WATCHED: usize = 3;

/// What is watched when budgets block pods in these namespaces.
fn scopes(namespaces: &BTreeSet<String>) -> BTreeSet<WatchScope> {
    if namespaces.len() > NAMESPACES_WATCHED {
        return [WatchScope::Cluster].into();
    }
    namespaces.iter().cloned().map(WatchScope::Namespace).collect()
}

/// The watches of budgets.
pub(crate) struct BudgetWatch {
    client: Client,
    /// In which budgets have blocked pods.
    namespaces: BTreeSet<String>,
    watches: BTreeMap<WatchScope, Watch<DisruptionBudget>>,
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
        Self { client, namespaces: BTreeSet::new(), watches: BTreeMap::new(), right: WatchRight::Granted }
    }

    /// Watches these namespaces too from now on.
    pub(crate) fn watch(&mut self, namespaces: BTreeSet<&str>) {
        let before = self.namespaces.len();
        self.namespaces.extend(namespaces.into_iter().map(str::to_owned));
        if self.right == WatchRight::Missing || self.namespaces.len() == before {
            return;
        }
        let scopes = scopes(&self.namespaces);
        self.watches.retain(|scope, _| scopes.contains(scope));
        for scope in scopes {
            let client = self.client.clone();
            self.watches.entry(scope).or_insert_with_key(|scope| {
                let api = match scope {
                    WatchScope::Namespace(namespace) => Api::namespaced(client, namespace),
                    WatchScope::Cluster => Api::all(client),
                };
                Selection { api, field_selector: None }.watch(None)
            });
        }
    }

    /// The next change and whose it is; never, while nothing is watched. Can be cancelled without
    /// losing one.
    pub(crate) async fn next(&mut self) -> (WatchScope, Change<DisruptionBudget>) {
        loop {
            let (scope, event) = self.next_of_any().await;
            let error = match event {
                WatchEvent::Changed(change) => return (scope, change),
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
                    "the watch of the PodDisruptionBudgets of {scope} broke; watching again"
                );
            }
        }
    }

    async fn next_of_any(&mut self) -> (WatchScope, WatchEvent<DisruptionBudget>) {
        if self.watches.is_empty() {
            return std::future::pending().await;
        }
        let nexts =
            self.watches.iter_mut().map(|(scope, watch)| async move { (scope.clone(), watch.next().await) }.boxed());
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

    #[test]
    fn any_number_of_namespaces_takes_a_bounded_number_of_watches() {
        let namespaces = |count: usize| (0..count).map(|n| format!("ns-{n}")).collect::<BTreeSet<_>>();
        for count in 0..200 {
            let (namespaces, scopes) = (namespaces(count), scopes(&namespaces(count)));
            assert!(scopes.len() <= NAMESPACES_WATCHED, "{scopes:?}");
            assert!(namespaces.iter().all(|namespace| scopes.iter().any(|scope| scope.has(namespace))), "{scopes:?}");
        }
        assert_eq!(scopes(&namespaces(3)).len(), 3, "a few are watched one by one");
        assert!(!scopes(&namespaces(1)).contains(&WatchScope::Cluster), "the rest of the cluster is not read");
    }

    #[tokio::test(start_paused = true)]
    async fn who_may_not_watch_budgets_asks_once() {
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
