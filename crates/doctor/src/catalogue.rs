//! Ids of all checks and findings in `docs/doctor.md`.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CheckId {
    Clusters,
    Variables,
    DryRun,
    AwsRights,
    Rules,
    EventSources,
    Drainers,
    HookNames,
    Concurrency,
    Hooks,
    Replacements,
    SignIn,
    InCluster,
    KubernetesRights,
    Nth,
    Cordon,
    Nodes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FindingId {
    NoClusters,
    ClustersUnknown,
    ClusterNotNamed,
    WrongSetting,
    UnknownVariable,
    DryRun,
    AwsRightMissing,
    AwsRightUnknown,
    NoSchedules,
    RuleMissing,
    RuleDisabled,
    RulesUnknown,
    SpotSwitchedOff,
    ForeignEventSource,
    EventSourcesUnknown,
    SecondDrainer,
    KarpenterQueue,
    KarpenterQueueMissing,
    RebalanceLoop,
    HookNotificationTarget,
    HookGroupUntagged,
    HookMissing,
    HookTimeoutShort,
    HookWaitsShorterThanSet,
    HookDefaultAbandon,
    HookDefaultContinue,
    InstanceKept,
    HookLeftToOthers,
    HookOfNoGroup,
    ReplacementOfNoGroup,
    ReplacementRefused,
    ConcurrencyLow,
    ConcurrencyUnknown,
    GroupsUnknown,
    UnknownCluster,
    WrongCertificateAuthority,
    NoNetwork,
    NoAccessEntry,
    NoBasicRights,
    ApiServerError,
    NoRights,
    NotInGroup,
    MissingRight,
    NthRuns,
    CordonRefused,
    BudgetAllowsNoDisruptions,
    BudgetAllowsNoDisruptionsNow,
    BudgetAllowsFewDisruptions,
    SeveralBudgets,
    EvictionRefused,
    BudgetsUnknown,
    GracePeriodTooLong,
    DoNotDisrupt,
    TagWithoutLabel,
    PlannedTaintLeft,
    NotAllPodsListed,
}

#[cfg(test)]
mod tests {
    use schemars::{JsonSchema, schema_for};
    use serde_json::json;

    use super::*;

    /// Fails unless the page's table with that head has the type's ids, in their order.
    fn is_documented<Id: JsonSchema>(head: &str) {
        let (_, rows) = include_str!("../../../docs/doctor.md").split_once(head).unwrap();
        let rows = rows.lines().skip(2).map_while(|row| row.strip_prefix("| `")?.split('`').next());
        assert_eq!(json!(rows.collect::<Vec<_>>()), schema_for!(Id).to_value()["enum"]);
    }

    #[test]
    fn page_lists_each_check_and_finding() {
        is_documented::<CheckId>("| check | what it asks |");
        is_documented::<FindingId>("| finding | what it means |");
    }
}
