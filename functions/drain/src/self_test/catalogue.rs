//! Every check and every finding by its id: what `docs/doctor.md` shows, and what a report may have.

/// What is looked at: the check's id, and what it asks.
pub(super) const CHECKS: [(&str, &str); 17] = [
    ("clusters", "Which clusters are there: the one that was asked about, those of `Clusters`, or all that EKS has."),
    (
        "variables",
        "Is every variable with the prefix `SPILLWAY_` one that this version knows? Another one changes nothing.",
    ),
    ("dry-run", "Does the function act on notices, or only say what it would have done?"),
    (
        "aws-rights",
        "May the function make each AWS call of a drain? Each is made, so that it changes nothing: see \
         [below](#how-the-aws-rights-are-tried).",
    ),
    ("rules", "Is there a rule for each kind of notice that the settings want, does it lead here, is it enabled?"),
    (
        "drainers",
        "Does somebody else get the same notices and could act on them: another rule on the default bus that leads to \
         a queue, a function or a workflow, or a hook with a notification target of its own? \
         And does Karpenter get the notices of the nodes that are left to it?",
    ),
    ("hook-names", "Has some group each hook that `Hooks` names?"),
    (
        "concurrency",
        "May Lambda run as many drains at once as there are nodes that Spillway drains? Each takes one of the account's \
         concurrent executions for its whole length.",
    ),
    (
        "hooks",
        "Does each Auto Scaling group with nodes in the cluster have a terminate hook of ours, does it wait long enough, \
         and what holds if nobody answers? Groups are known by their tags, as instances are.",
    ),
    (
        "sign-in",
        "Is the network open, is the endpoint's certificate of the authority that EKS names now, may we sign in?",
    ),
    ("in-cluster", "Stands for all the checks below, when nobody could sign in."),
    (
        "kubernetes-rights",
        "Each right of `deploy/rbac.yaml` that the settings need, and of `deploy/optional/`, by SelfSubjectAccessReview.",
    ),
    ("version", "Which Kubernetes it is."),
    ("nth", "Does aws-node-termination-handler run there? By its Helm chart's label on its pods."),
    ("flow-control", "Is `deploy/optional/flow-control.yaml` in force?"),
    ("cordon", "Would an admission webhook or policy refuse the cordon? One node is claimed as a server-side dry run."),
    (
        "nodes",
        "Which nodes could not be drained in two minutes right now, and because of which budget or pod: budgets, graces, \
         do-not-disrupt annotations, pods that nothing creates again, and evictions as dry runs.",
    ),
];

/// What may be found: the finding's id, and what it means.
pub(super) const FINDINGS: [(&str, &str); 46] = [
    ("no-clusters", "EKS has no cluster in this Region."),
    ("clusters-unknown", "The clusters could not be listed, and no setting names them."),
    (
        "unknown-variable",
        "A setting of another version, or a slip of the pen in a template of your own. It has no effect.",
    ),
    ("dry-run", "`DryRun` is true: no notice is acted on, and each hook runs to its timeout."),
    ("aws-right-missing", "AWS denies a call of a drain. The finding says what fails without it."),
    ("aws-right-unknown", "The call could not be tried, so nobody knows: no answer, or an odd one."),
    (
        "no-schedules",
        "The function was not told of its schedule group: something else than the template has deployed it.",
    ),
    ("rule-missing", "No rule brings such notices to this function."),
    ("rule-disabled", "The rule is there and switched off."),
    ("rules-unknown", "The rules could not be listed; nothing is known of a second drainer either."),
    (
        "second-drainer",
        "A queue, function or workflow gets the same notices: NTH in queue mode, a second Spillway, or something \
         harmless. Nobody but you can tell which.",
    ),
    ("karpenter-queue", "Karpenter's interruption queue. All is well while its nodes are left to it."),
    (
        "karpenter-queue-missing",
        "Karpenter has nodes, they are left to it, and no rule leads spot interruptions to any queue.",
    ),
    (
        "rebalance-loop",
        "`rebalance` in `DrainOn` with `Karpenter=nodeclaim`: Karpenter may launch the same capacity again, which gets the next \
         recommendation.",
    ),
    ("hook-notification-target", "A terminate hook of ours has a notification target: somebody else may complete it."),
    ("hook-missing", "A group ends its nodes without waiting for a drain. Spot notices are handled all the same."),
    (
        "hook-timeout-short",
        "The hook is over before Lambda's first retry: one failed attempt, and the node goes undrained.",
    ),
    (
        "hook-waits-shorter-than-set",
        "100 times the hook's timeout is less than `HookMaxWaitS`: a drain has no longer than the hook.",
    ),
    (
        "hook-default-abandon",
        "What holds if nobody answers is ABANDON: the other hooks are not waited for, or the instance is kept. For the \
         only hook of a group it makes no difference, and is only told.",
    ),
    (
        "hook-left-to-others",
        "A group has a terminate hook beside ours. If nobody completes it, each instance waits for its timeout; with a \
         notification target it is only told.",
    ),
    ("hook-of-no-group", "`Hooks` names a hook, and no group with nodes in these clusters has it."),
    (
        "concurrency-low",
        "There are more nodes than invocations may run at once: if all go together, the last notices wait past their two \
         minutes.",
    ),
    ("groups-unknown", "The groups or their hooks could not be listed."),
    ("unknown-cluster", "EKS does not tell the way into the cluster."),
    ("wrong-certificate-authority", "Who answers at the endpoint is not who EKS says."),
    ("no-network", "No connection to the endpoint comes about."),
    ("no-access-entry", "The cluster does not know the function's role (401)."),
    ("no-basic-rights", "The function is signed in, and may not even ask who it is (403)."),
    ("api-server-error", "The API server answers with an error."),
    ("no-rights", "The group `spillway` has no right at all: `deploy/` is not applied."),
    ("not-in-group", "The function is signed in, and is not in the group `spillway`."),
    ("missing-right", "One right is missing. The finding says what a drain cannot do without it."),
    ("no-flow-control", "Drains share the API server's capacity with everybody else."),
    ("nth-runs", "A second drainer in the cluster, in whichever mode."),
    (
        "cordon-refused",
        "An admission webhook or policy refuses the cordon. With a deadline pods are evicted all the same, and may come back; \
         without one the notice fails.",
    ),
    (
        "budget-allows-no-disruptions",
        "The budget never allows a disruption, or its controller cannot calculate how many: a drain waits, and then deletes \
         the pod past it or loses it.",
    ),
    (
        "budget-allows-no-disruptions-now",
        "The budget allows no disruption at this moment, because some of its pods are not healthy.",
    ),
    (
        "budget-allows-few-disruptions",
        "One node has more of the budget's pods than it lets be disrupted within two minutes, if a replacement takes 30 s. Nobody knows \
         how long it takes.",
    ),
    ("several-budgets", "Several budgets cover one pod, which Kubernetes then never evicts."),
    (
        "eviction-refused",
        "A dry run of an eviction was refused by somebody else than a budget: a webhook, most likely.",
    ),
    ("budgets-unknown", "The API server did not say whether these budgets allow a disruption: it was busy, or silent."),
    ("grace-period-too-long", "The pods ask for more time to shut down than a spot notice leaves."),
    ("do-not-disrupt", "The pods have an annotation such as `karpenter.sh/do-not-disrupt`."),
    ("bare-pods", "Nothing creates these pods again after a drain."),
    ("single-replica", "Workloads of one pod, away for as long as it moves. Nothing is wrong; it is only told."),
    ("not-all-pods-listed", "The pods could not all be listed in time: there may be more findings."),
];

/// Whether a report may have that check.
pub(super) fn has_check(id: &str) -> bool {
    CHECKS.iter().any(|(known, _)| *known == id)
}

/// Whether a report may have that finding.
pub(super) fn has_finding(id: &str) -> bool {
    FINDINGS.iter().any(|(known, _)| *known == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_doctor_has_these_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
        let page = std::fs::read_to_string(path).expect("docs/doctor.md is there");
        for (head, rows) in [("check | what it asks", &CHECKS[..]), ("finding | what it means", &FINDINGS[..])] {
            let rows: Vec<_> = rows.iter().map(|(id, text)| format!("| `{id}` | {text} |")).collect();
            let table = format!("| {head} |\n| --- | --- |\n{}\n", rows.join("\n"));
            assert!(page.contains(&table), "docs/doctor.md has another table than this:\n\n{table}");
        }
    }

    #[test]
    fn every_id_stands_somewhere_in_the_doctor() {
        fn sources(folder: &std::path::Path) -> String {
            let entries = std::fs::read_dir(folder).expect("the sources").map(|entry| entry.expect("an entry").path());
            let text = |path: std::path::PathBuf| match path.is_dir() {
                true => sources(&path),
                false if path.ends_with("catalogue.rs") => String::new(),
                false => std::fs::read_to_string(path).expect("it is text"),
            };
            entries.map(text).collect()
        }
        let sources = sources(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/self_test")));
        for (id, _) in CHECKS.iter().chain(&FINDINGS) {
            assert!(sources.contains(&format!("\"{id}\"")), "nothing makes {id}");
        }
    }
}
