//! Names, defaults and descriptions of all settings.

use crate::environment::Setting;

const NONE: &str = "";

pub(crate) const DRAIN_ON: Setting = Setting {
    name: "SPILLWAY_DRAIN_ON",
    default: "spot,capacity,maintenance,state-change,terminate",
    accepted: "some of spot, capacity, maintenance, state-change, terminate and rebalance, separated by commas, or off",
    meaning: "which [notices](notices.md) drain a node. A notice that neither this nor `CordonOn` names is ignored. Without `terminate` all such \
              hooks are left to others. Without `state-change` an instance that runs again does not uncordon its node",
};
pub(crate) const CORDON_ON: Setting = Setting {
    name: "SPILLWAY_CORDON_ON",
    default: "off",
    accepted: "some of spot, capacity, maintenance, state-change, terminate and rebalance, separated by commas, or off",
    meaning: "which notices cordon a node and leave its pods. A terminate hook is then completed right after the cordon. A \
              notice cannot be in `DrainOn` too",
};
pub(crate) const LAUNCH: Setting = Setting {
    name: "SPILLWAY_LAUNCH",
    default: "off",
    accepted: "off, ABANDON or CONTINUE",
    meaning: "whether the launch hook of an Auto Scaling group is completed when its node is Ready. The value is the result \
              that is sent if the node never becomes Ready: `ABANDON` ends the instance, so that the group starts another; \
              `CONTINUE` lets it into service",
};
pub(crate) const MANAGED_NODE_GROUPS: Setting = Setting {
    name: "SPILLWAY_MANAGED_NODE_GROUPS",
    default: "gaps",
    accepted: "gaps, off or drain",
    meaning: "whether nodes of EKS managed node groups are drained: `gaps` where EKS does not (scheduled maintenance, \
              hooks that are not EKS' own), `drain` for every notice",
};
pub(crate) const KARPENTER: Setting = Setting {
    name: "SPILLWAY_KARPENTER",
    default: "off",
    accepted: "off or nodeclaim",
    meaning: "whether Spillway acts on Karpenter's nodes. `nodeclaim` writes the deadline on the NodeClaim and deletes it, \
              so that Karpenter starts the replacement first. This needs three more rights: \
              `kubectl apply -f deploy/optional/karpenter.yaml`",
};
pub(crate) const MAINTENANCE_LEAD: Setting = Setting {
    name: "SPILLWAY_MAINTENANCE_LEAD_S",
    default: "3600",
    accepted: "a whole number of seconds from 10 to 172800 (48 hours, as long as a drain may go on)",
    meaning: "how long before scheduled maintenance drains begin. [Five nodes](notices.md#the-pace) of a cluster, group and \
              zone drain at once",
};
pub(crate) const HOOKS_WITHOUT_NODE: Setting = Setting {
    name: "SPILLWAY_HOOKS_WITHOUT_NODE",
    default: "off",
    accepted: "off, CONTINUE or ABANDON",
    meaning: "the result sent for a hook whose instance is in no cluster, or in a cluster that does not let Spillway in. With \
              `off` the hook's own timeout ends it",
};
pub(crate) const HOOK_MAX_WAIT: Setting = Setting {
    name: "SPILLWAY_HOOK_MAX_WAIT_S",
    // Auto Scaling's default timeout of a hook.
    default: "3600",
    accepted: "a whole number of seconds from 60 to 172800 (48 hours, Auto Scaling's own limit)",
    meaning: "how long a hook may be held, from its notice, if Auto Scaling holds it that long. Before that, blocked pods \
              are [deleted in time to shut down](what-happens.md#forced-in-time)",
};
pub(crate) const HOOKS: Setting = Setting {
    name: "SPILLWAY_HOOKS",
    default: "spillway",
    accepted: "names of lifecycle hooks, separated by commas",
    meaning: "the hooks that Spillway completes; no other hook is touched",
};
pub(crate) const HOOK_GROUP_TAG: Setting = Setting {
    name: "SPILLWAY_HOOK_GROUP_TAG",
    default: NONE,
    accepted: "a tag, as key=value, of letters, digits and + . _ : / @ -, or nothing",
    meaning: "the tag of the Auto Scaling groups whose hooks the function's role may hold and complete: IAM denies it for \
              every other group. Nothing means every group of the account. The [doctor](doctor.md) finds a group with a hook \
              of ours that lacks the tag",
};
pub(crate) const CLUSTERS: Setting = Setting {
    name: "SPILLWAY_CLUSTERS",
    default: NONE,
    accepted: "names of EKS clusters, separated by commas, or nothing",
    meaning: "the clusters whose nodes are drained; nothing means all clusters",
};
pub(crate) const MANAGED_TAG: Setting = Setting {
    name: "SPILLWAY_MANAGED_TAG",
    default: NONE,
    accepted: "a tag's key, or key=value, or nothing",
    meaning: "only instances with the tag, or of an Auto Scaling group with it, are drained; NTH uses \
              aws-node-termination-handler/managed",
};
pub(crate) const NODE_SELECTOR: Setting = Setting {
    name: "SPILLWAY_NODE_SELECTOR",
    default: NONE,
    accepted: "a label selector as kubectl takes it, such as team=shop,tier in (web,api),!legacy, or nothing",
    meaning: "only nodes with these labels are drained. This costs a request before the cordon. A node with the label \
              spillway/ignore is never drained",
};
pub(crate) const REPLACE: Setting = Setting {
    name: "SPILLWAY_REPLACE",
    default: "off",
    accepted: "off, spot or spot,maintenance",
    meaning: "at which notices the Auto Scaling group [replaces the instance](notices.md#replacement-first) before AWS takes the \
              old one: `spot` at the interruption, `maintenance` after the drain for a retirement or a stop. Only in groups \
              with the tag `spillway:replace=true`",
};
pub(crate) const TAINTS: Setting = Setting {
    name: "SPILLWAY_TAINTS",
    default: NONE,
    accepted: "one of spillway and nth, out-of-service, or both with a comma between them, or off",
    meaning: "the taints of a drained node. `spillway`: one such as spillway/spot-interruption (NoSchedule), with the claim. `nth`: \
              the same with the names of aws-node-termination-handler, which has none for some kinds of notice \
              ([all names](what-happens.md#marks-on-the-node)). `out-of-service`: node.kubernetes.io/out-of-service, which \
              frees pods and volumes at once, on a NotReady node whose instance EC2 calls stopped or terminated",
};
pub(crate) const LOAD_BALANCERS: Setting = Setting {
    name: "SPILLWAY_LOAD_BALANCERS",
    default: "off",
    accepted: "off, exclude or wait",
    meaning: "whether the claim labels the node node.kubernetes.io/exclude-from-external-load-balancers. With `wait` a hook \
              also waits until load balancers have [let the instance \
              go](what-happens.md#when-the-last-pod-has-gone), for at most ten minutes after its last pod",
};
pub(crate) const NODE_EVENTS: Setting = Setting {
    name: "SPILLWAY_NODE_EVENTS",
    default: "false",
    accepted: "true or false",
    meaning: "whether [Kubernetes events](what-happens.md#kubernetes-events) on the node and its pods describe the \
              drain. This needs one more right: `kubectl apply -f deploy/optional/node-events.yaml`",
};
pub(crate) const DRY_RUN: Setting = Setting {
    name: "SPILLWAY_DRY_RUN",
    default: "false",
    accepted: "true or false",
    meaning: "whether to change nothing and only report the intended actions",
};
/// All settings, in the order of the template's parameters.
pub(crate) const SETTINGS: [Setting; 18] = [
    DRAIN_ON,
    CORDON_ON,
    LAUNCH,
    MANAGED_NODE_GROUPS,
    KARPENTER,
    CLUSTERS,
    MANAGED_TAG,
    NODE_SELECTOR,
    HOOKS,
    HOOK_GROUP_TAG,
    HOOKS_WITHOUT_NODE,
    HOOK_MAX_WAIT,
    MAINTENANCE_LEAD,
    REPLACE,
    TAINTS,
    LOAD_BALANCERS,
    NODE_EVENTS,
    DRY_RUN,
];

/// Group, role and failure queue of the EventBridge schedules. The template sets this variable.
pub(crate) const SCHEDULES: Setting = Setting {
    name: "SPILLWAY_SCHEDULES",
    default: NONE,
    accepted: "the name of a schedule group, the ARN of the role that EventBridge Scheduler takes and that of the failure queue, with a space between them",
    meaning: "where the function keeps its later work; the template sets it",
};

/// Name of the CloudFormation stack. The template sets this variable.
pub(crate) const STACK: Setting = Setting {
    name: "SPILLWAY_STACK",
    default: NONE,
    accepted: "the name of a CloudFormation stack",
    meaning: "the stack of the function's events on the bus; the template sets it",
};

/// URL of the announce function's queue. The template sets this variable.
pub(crate) const ANNOUNCEMENTS: Setting = Setting {
    name: "SPILLWAY_ANNOUNCEMENTS",
    default: NONE,
    accepted: "the URL of an SQS queue",
    meaning: "the queue for messages about drains, if there are any; the template sets it",
};

pub(super) fn known() -> Vec<Setting> {
    [&SETTINGS[..], &[SCHEDULES, STACK, ANNOUNCEMENTS]].concat()
}
