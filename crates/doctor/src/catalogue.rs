//! Every check and every finding that a report may have, by its id. `docs/doctor.md` says what each asks or means.

use serde::{Serialize, Serializer};

/// Makes an enum of ids: a variant for each, and its text.
macro_rules! ids {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $id:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant),*
        }

        impl $name {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant),*];

            /// The id, in kebab-case. Stable.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $id),*
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

ids! {
    /// What is looked at.
    CheckId {
        Clusters = "clusters",
        Variables = "variables",
        DryRun = "dry-run",
        AwsRights = "aws-rights",
        Rules = "rules",
        Drainers = "drainers",
        HookNames = "hook-names",
        Concurrency = "concurrency",
        Hooks = "hooks",
        SignIn = "sign-in",
        InCluster = "in-cluster",
        KubernetesRights = "kubernetes-rights",
        Version = "version",
        Nth = "nth",
        FlowControl = "flow-control",
        Cordon = "cordon",
        Nodes = "nodes",
    }
}

ids! {
    /// What may be wrong.
    FindingId {
        NoClusters = "no-clusters",
        ClustersUnknown = "clusters-unknown",
        UnknownVariable = "unknown-variable",
        DryRun = "dry-run",
        AwsRightMissing = "aws-right-missing",
        AwsRightUnknown = "aws-right-unknown",
        NoSchedules = "no-schedules",
        RuleMissing = "rule-missing",
        RuleDisabled = "rule-disabled",
        RulesUnknown = "rules-unknown",
        SecondDrainer = "second-drainer",
        KarpenterQueue = "karpenter-queue",
        KarpenterQueueMissing = "karpenter-queue-missing",
        RebalanceLoop = "rebalance-loop",
        HookNotificationTarget = "hook-notification-target",
        HookGroupUntagged = "hook-group-untagged",
        HookMissing = "hook-missing",
        HookTimeoutShort = "hook-timeout-short",
        HookWaitsShorterThanSet = "hook-waits-shorter-than-set",
        HookDefaultAbandon = "hook-default-abandon",
        HookLeftToOthers = "hook-left-to-others",
        HookOfNoGroup = "hook-of-no-group",
        ConcurrencyLow = "concurrency-low",
        ConcurrencyUnknown = "concurrency-unknown",
        GroupsUnknown = "groups-unknown",
        UnknownCluster = "unknown-cluster",
        WrongCertificateAuthority = "wrong-certificate-authority",
        NoNetwork = "no-network",
        NoAccessEntry = "no-access-entry",
        NoBasicRights = "no-basic-rights",
        ApiServerError = "api-server-error",
        NoRights = "no-rights",
        NotInGroup = "not-in-group",
        MissingRight = "missing-right",
        NoFlowControl = "no-flow-control",
        NthRuns = "nth-runs",
        CordonRefused = "cordon-refused",
        BudgetAllowsNoDisruptions = "budget-allows-no-disruptions",
        BudgetAllowsNoDisruptionsNow = "budget-allows-no-disruptions-now",
        BudgetAllowsFewDisruptions = "budget-allows-few-disruptions",
        SeveralBudgets = "several-budgets",
        EvictionRefused = "eviction-refused",
        BudgetsUnknown = "budgets-unknown",
        GracePeriodTooLong = "grace-period-too-long",
        DoNotDisrupt = "do-not-disrupt",
        BarePods = "bare-pods",
        ToleratesCordon = "tolerates-cordon",
        SingleReplica = "single-replica",
        NotAllPodsListed = "not-all-pods-listed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids in the page's table with that head.
    fn documented(head: &str) -> Vec<&'static str> {
        let (_, rows) = include_str!("../../../docs/doctor.md").split_once(head).unwrap();
        rows.lines().skip(2).map_while(|row| row.strip_prefix("| `")?.split('`').next()).collect()
    }

    #[test]
    fn the_page_names_each_check_and_each_finding_in_this_order() {
        let checks: Vec<_> = CheckId::ALL.iter().map(|id| id.as_str()).collect();
        assert_eq!(documented("| check | what it asks |"), checks);
        let findings: Vec<_> = FindingId::ALL.iter().map(|id| id.as_str()).collect();
        assert_eq!(documented("| finding | what it means |"), findings);
    }
}
