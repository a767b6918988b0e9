//! Every setting, as the documents and the template show it.

use spillway_startup::settings::Setting;

/// The default of a list or a name that means: no restriction.
const NONE: &str = "";
/// The value of [`HEARTBEAT`] that leaves it to each hook.
pub(super) const HALF: &str = "half";

const NOTICE: &str = "drain, cordon or ignore";
const FLAG: &str = "true or false";

pub(crate) const SPOT: Setting = Setting {
    name: "SPILLWAY_SPOT",
    default: "drain",
    accepted: NOTICE,
    meaning: "what a spot interruption does; `ignore` switches the rule off",
};
pub(crate) const CAPACITY: Setting = Setting {
    name: "SPILLWAY_CAPACITY",
    default: "drain",
    accepted: NOTICE,
    meaning: "what the interruption of a capacity reservation and the end of a capacity block do; `ignore` switches \
              the rules off",
};
pub(crate) const MAINTENANCE: Setting = Setting {
    name: "SPILLWAY_MAINTENANCE",
    default: "drain",
    accepted: NOTICE,
    meaning: "what scheduled maintenance (AWS Health) does; `ignore` switches the rule off",
};
pub(crate) const STATE_CHANGE: Setting = Setting {
    name: "SPILLWAY_STATE_CHANGE",
    default: "drain",
    accepted: NOTICE,
    meaning: "what an instance does that stops or shuts down without another notice; `ignore` switches the rule off, \
              and with it what follows when it runs again",
};
pub(crate) const REBALANCE: Setting = Setting {
    name: "SPILLWAY_REBALANCE",
    default: "ignore",
    accepted: NOTICE,
    meaning: "what a rebalance recommendation does; `ignore` switches the rule off",
};
pub(crate) const TERMINATE: Setting = Setting {
    name: "SPILLWAY_TERMINATE",
    default: "drain",
    accepted: NOTICE,
    meaning: "what the terminate hook of an Auto Scaling group does; with `cordon` it is completed right after the \
              cordon; `ignore` switches the rule off and leaves all such hooks to others",
};
pub(crate) const LAUNCH: Setting = Setting {
    name: "SPILLWAY_LAUNCH",
    default: "ignore",
    accepted: "complete or ignore",
    meaning: "whether the launch hook of an Auto Scaling group is completed when its node is Ready; `ignore` switches \
              the rule off",
};
pub(crate) const MANAGED_NODE_GROUPS: Setting = Setting {
    name: "SPILLWAY_MANAGED_NODE_GROUPS",
    default: "gaps",
    accepted: "gaps, leave or drain",
    meaning: "whether nodes of EKS managed node groups are drained: `gaps` where EKS does not (scheduled maintenance, \
              hooks that are not EKS' own), `leave` never, `drain` for every notice",
};
pub(crate) const KARPENTER: Setting = Setting {
    name: "SPILLWAY_KARPENTER",
    default: "leave",
    accepted: "leave or nodeclaim",
    meaning: "what happens to Karpenter's nodes: `leave` them to Karpenter; `nodeclaim` stamps the deadline on the \
              NodeClaim and deletes it, so that Karpenter starts the replacement first",
};
pub(crate) const REBALANCE_WINDOW: Setting = Setting {
    name: "SPILLWAY_REBALANCE_WINDOW_S",
    default: "600",
    accepted: "a whole number of seconds from 1 to 86400",
    meaning: "for how long a rebalance recommendation drains; then what is left stays",
};
pub(crate) const REBALANCE_UNDO: Setting = Setting {
    name: "SPILLWAY_REBALANCE_UNDO_S",
    default: "3600",
    accepted: "a whole number of seconds from 1 to 604800",
    meaning: "after how long a node that was cordoned for a rebalance recommendation is uncordoned, if no interruption \
              followed",
};
pub(crate) const MAINTENANCE_LEAD: Setting = Setting {
    name: "SPILLWAY_MAINTENANCE_LEAD_S",
    default: "3600",
    accepted: "a whole number of seconds from 1 to 172800 (48 hours, as long as a drain may go on)",
    meaning: "how long before scheduled maintenance its drain begins",
};
pub(crate) const UNDRAINED_RESULT: Setting = Setting {
    name: "SPILLWAY_UNDRAINED_RESULT",
    default: "CONTINUE",
    accepted: "CONTINUE or ABANDON",
    meaning: "what Auto Scaling is told when pods are left at the end of a hook's wait. `ABANDON` skips the remaining \
              hooks, and keeps the instance in a group whose instance lifecycle policy retains abandoned ones",
};
pub(crate) const UNREADY_RESULT: Setting = Setting {
    name: "SPILLWAY_UNREADY_RESULT",
    default: "ABANDON",
    accepted: "CONTINUE or ABANDON",
    meaning: "what Auto Scaling is told when the node of a launch hook never was Ready. `ABANDON` ends the instance, so \
              that the group starts another",
};
pub(crate) const STRANDED_HOOKS: Setting = Setting {
    name: "SPILLWAY_STRANDED_HOOKS",
    default: "leave",
    accepted: "leave, CONTINUE or ABANDON",
    meaning: "what Auto Scaling is told when a hook's instance is in no cluster, or in one that the function may not \
              enter: nothing, so that the hook's own timeout ends it, or that answer",
};
pub(crate) const HOOK_MAX_WAIT: Setting = Setting {
    name: "SPILLWAY_HOOK_MAX_WAIT_S",
    // As long as a hook waits by itself, if its group does not say otherwise.
    default: "3600",
    accepted: "a whole number of seconds from 60 to 172800 (48 hours, Auto Scaling's own limit)",
    meaning: "how long a hook may be held, from its notice, if Auto Scaling holds it that long",
};
pub(crate) const HEARTBEAT: Setting = Setting {
    name: "SPILLWAY_HEARTBEAT_S",
    default: HALF,
    accepted: "half (of the hook's own timeout) or a whole number of seconds from 5 to 3600",
    meaning: "how long a hook goes without a heartbeat. A number counts only if it is less than half of the hook's own \
              timeout; it must be less than the longest wait",
};
pub(crate) const HOOKS: Setting = Setting {
    name: "SPILLWAY_HOOKS",
    default: NONE,
    accepted: "names of lifecycle hooks, separated by commas, or nothing",
    meaning: "which hooks are ours; nothing means all but those that EKS puts on managed node groups",
};
pub(crate) const HELD_PODS: Setting = Setting {
    name: "SPILLWAY_HELD_PODS",
    default: "keep",
    accepted: "keep or delete",
    meaning: "what becomes of pods that something still holds when a hook's longest wait, or a rebalance window, is \
              over: they stay, or are [deleted in time to shut down](what-happens.md#forced-in-time)",
};
pub(crate) const MARGIN: Setting = Setting {
    name: "SPILLWAY_MARGIN_S",
    default: "2",
    accepted: "a whole number of seconds from 0 to 600",
    meaning: "what is kept before the instance goes, so that the kubelet can report its pods' end. Less than the 120 s \
              of a spot or capacity notice",
};
pub(crate) const CLUSTERS: Setting = Setting {
    name: "SPILLWAY_CLUSTERS",
    default: NONE,
    accepted: "names of EKS clusters, separated by commas, or nothing",
    meaning: "whose nodes are acted on; nothing means every cluster's",
};
pub(crate) const MANAGED_TAG: Setting = Setting {
    name: "SPILLWAY_MANAGED_TAG",
    default: NONE,
    accepted: "a tag's key, or key=value, or nothing",
    meaning: "only instances with that tag, or of an Auto Scaling group with it, are acted on; \
              aws-node-termination-handler/managed is the one that NTH uses",
};
pub(crate) const NODE_SELECTOR: Setting = Setting {
    name: "SPILLWAY_NODE_SELECTOR",
    default: NONE,
    accepted: "a label selector as kubectl takes it, such as team=shop,tier in (web,api),!legacy, or nothing",
    meaning: "only nodes with such labels are acted on. It costs a request before the cordon. A node with the label \
              spillway/ignore is never touched, whatever this says",
};
pub(crate) const TAINT: Setting = Setting {
    name: "SPILLWAY_TAINT",
    default: "none",
    accepted: "none, spillway or nth",
    meaning: "whether the claim taints the node too, and by whose names: spillway/spot-interruption and so on, or those \
              of aws-node-termination-handler, which has none for some kinds of notice \
              ([all names](what-happens.md#marks-on-the-node))",
};
pub(crate) const TAINT_EFFECT: Setting = Setting {
    name: "SPILLWAY_TAINT_EFFECT",
    default: "NoSchedule",
    accepted: "NoSchedule, PreferNoSchedule or NoExecute",
    meaning: "the effect of that taint. `NoExecute` ends pods without asking their budgets",
};
pub(crate) const EXCLUDE_FROM_LOAD_BALANCERS: Setting = Setting {
    name: "SPILLWAY_EXCLUDE_FROM_LOAD_BALANCERS",
    default: "false",
    accepted: FLAG,
    meaning: "whether the claim labels the node node.kubernetes.io/exclude-from-external-load-balancers",
};
pub(crate) const OUT_OF_SERVICE_TAINT: Setting = Setting {
    name: "SPILLWAY_OUT_OF_SERVICE_TAINT",
    default: "false",
    accepted: FLAG,
    meaning: "whether a node that is NotReady, and whose instance EC2 says is stopped or terminated, gets the taint \
              node.kubernetes.io/out-of-service, which frees its pods and volumes at once",
};
pub(crate) const NODE_EVENTS: Setting = Setting {
    name: "SPILLWAY_NODE_EVENTS",
    default: "none",
    accepted: "none, spillway or nth",
    meaning: "whether [Kubernetes events](what-happens.md#kubernetes-events) on the node and on its pods tell what became of them, and by \
              whose reasons: ours, or those of aws-node-termination-handler. It needs a right more: \
              `kubectl apply -f deploy/optional/node-events.yaml`",
};
pub(crate) const DRY_RUN: Setting = Setting {
    name: "SPILLWAY_DRY_RUN",
    default: "false",
    accepted: FLAG,
    meaning: "whether to touch nothing and only say what would have been done",
};
pub(crate) const ANNOUNCE: Setting = Setting {
    name: "SPILLWAY_ANNOUNCE",
    default: "begin-and-end",
    accepted: "begin-and-end, end or none",
    meaning: "what is put on the account's event bus of a drain: that it begins, and the receipt at its end \
              ([both](receipt.md#on-the-event-bus)). Messages and rules of your own are made from these events",
};
pub(crate) const METRICS_NAMESPACE: Setting = Setting {
    name: "SPILLWAY_METRICS_NAMESPACE",
    default: "Spillway",
    accepted: "1 to 255 letters, digits and . - _ / # :, not beginning with a colon or AWS/",
    meaning: "the CloudWatch namespace of the metrics",
};

/// Every setting there is, as `docs/settings.md` orders them.
pub(crate) const SETTINGS: [Setting; 31] = [
    SPOT,
    CAPACITY,
    MAINTENANCE,
    STATE_CHANGE,
    REBALANCE,
    TERMINATE,
    LAUNCH,
    MANAGED_NODE_GROUPS,
    KARPENTER,
    CLUSTERS,
    MANAGED_TAG,
    NODE_SELECTOR,
    HOOKS,
    STRANDED_HOOKS,
    HOOK_MAX_WAIT,
    HEARTBEAT,
    UNDRAINED_RESULT,
    UNREADY_RESULT,
    REBALANCE_WINDOW,
    REBALANCE_UNDO,
    MAINTENANCE_LEAD,
    HELD_PODS,
    MARGIN,
    TAINT,
    TAINT_EFFECT,
    EXCLUDE_FROM_LOAD_BALANCERS,
    OUT_OF_SERVICE_TAINT,
    NODE_EVENTS,
    DRY_RUN,
    ANNOUNCE,
    METRICS_NAMESPACE,
];

/// What the template tells the function and nobody chooses.
pub(crate) const SCHEDULES: Setting = Setting {
    name: "SPILLWAY_SCHEDULES",
    default: NONE,
    accepted: "the name of a schedule group, the ARN of the role that EventBridge Scheduler takes and that of the failure queue, with a space between them",
    meaning: "where the function keeps what it does later; the template sets it",
};

/// The stack, by which its own events are known.
pub(crate) const STACK: Setting = Setting {
    name: "SPILLWAY_STACK",
    default: NONE,
    accepted: "the name of a CloudFormation stack",
    meaning: "whose events the function puts on the bus; the template sets it",
};

/// Every variable of ours that the function may find in its environment.
pub(super) fn known() -> Vec<Setting> {
    [&SETTINGS[..], &[SCHEDULES, STACK]].concat()
}
