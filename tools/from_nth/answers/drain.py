"""How NTH drained: the pods, the node, the hook."""

from __future__ import annotations

from ..installation import Installation
from ..parameters import NTHS_ATTEMPT_S, UNSET, heartbeats_until
from .answer import NOT_IN_IMDS_MODE, Answer, Answers, differs, no_counterpart, not_needed, same


def dry_run(nth: Installation) -> Answer:
    if not nth["dryRun"]:
        return same("What it does is real.")
    return differs(
        "Spillway's dry run touches nothing at all. NTH's went on to complete hooks, send heartbeats and delete "
        "messages.",
        "DryRun",
    )


def taint(nth: Installation) -> Answer:
    if not nth["taintNode"]:
        return same("Nodes get no taint.")
    return same(
        "NTH's own keys, so that tolerations and alerts go on working. Taints=spillway has ours instead.", "Taints"
    )


def taint_effect(nth: Installation) -> Answer:
    effect = nth["TAINT_EFFECT"]
    if not nth["taintNode"]:
        return not_needed("taintNode is false, so there was no taint.")
    if effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        return differs("It is no taint's effect; NTH took NoSchedule instead, and so does Spillway.")
    if effect == "NoSchedule":
        return same("The effect of the taint.")
    return no_counterpart(
        "Spillway's taint is always NoSchedule: the node is cordoned as well, and NoExecute throws pods off past every "
        "PodDisruptionBudget."
    )


def out_of_service(nth: Installation) -> Answer:
    if not nth["enableOutOfServiceTaint"]:
        return same("Nodes do not get the out-of-service taint.")
    return differs(
        "Only when EC2 says that the instance has stopped and the node is not ready, and taken off when it is back. "
        "NTH set it after each drain that succeeded, on a node that still ran.",
        "Taints",
    )


def load_balancers(nth: Installation) -> Answer:
    if not nth["excludeFromLoadBalancers"]:
        return same("Nodes do not get the label.")
    return differs("The same label, taken off again when the cordon is undone.", "LoadBalancers")


def local_data(nth: Installation) -> Answer:
    if nth["deleteLocalData"]:
        return same("Pods with emptyDir volumes are evicted.")
    return no_counterpart(
        "With false, one pod with an emptyDir stopped the whole drain. Spillway evicts such pods. Those that have to "
        "stay as long as they can: give them the annotation "
        'cluster-autoscaler.kubernetes.io/safe-to-evict: "false", and Spillway holds them as a budget would.'
    )


def daemon_sets(nth: Installation) -> Answer:
    if nth["ignoreDaemonSets"]:
        return same("Pods of DaemonSets stay.")
    return no_counterpart(
        "With false, NTH's drain failed on every node that has a DaemonSet's pod. With Spillway they stay. Nothing "
        "to do."
    )


def pod_grace(nth: Installation) -> Answer:
    if nth["podTerminationGracePeriod"] < 0:
        return same("Each pod gets its own grace period.")
    return no_counterpart(
        "Each pod gets its own grace period, cut only where the instance goes sooner. Where this was to lengthen or "
        "shorten it, set terminationGracePeriodSeconds in the pods."
    )


def node_grace(nth: Installation) -> Answer:
    if nth["nodeTerminationGracePeriod"] <= NTHS_ATTEMPT_S:
        return not_needed(
            "NTH gave up an attempt after this and began again. Spillway drains for as long as the notice leaves: two "
            "minutes for a spot interruption, HookMaxWaitS for a hook."
        )
    return differs(
        "For hooks only: a spot interruption leaves two minutes, whatever is said here. NTH gave up after this and "
        "left the hook to its timeout; Spillway completes it, with CONTINUE.",
        "HookMaxWaitS",
    )


def heartbeat(nth: Installation) -> Answer:
    if not nth.queue_mode:
        return NOT_IN_IMDS_MODE
    if nth["heartbeatInterval"] == UNSET:
        return differs("Spillway always sends heartbeats while it drains, after half of the hook's timeout.")
    return differs("Heartbeats come after half of the hook's own timeout, whatever that is: one that is late does no harm.")


def heartbeat_until(nth: Installation) -> Answer:
    if not nth.queue_mode:
        return NOT_IN_IMDS_MODE
    if heartbeats_until(nth) is None:
        return not_needed("heartbeatInterval is not set, so NTH sent no heartbeats.")
    return differs(
        "How long a hook is held in all; with nodeTerminationGracePeriod, the shorter of the two.", "HookMaxWaitS"
    )


def delay(nth: Installation) -> Answer:
    if nth["completeLifecycleActionDelaySeconds"] <= 0:
        return same("The hook is completed as soon as the node is empty.")
    return differs(
        "The hook is completed when the pods have gone and their volumes are detached, for which it waits up to 60 s. If the "
        "delay was for load balancers, set LoadBalancers=wait. There is no fixed delay."
    )


def not_found(nth: Installation) -> Answer:
    if not nth.queue_mode:
        return NOT_IN_IMDS_MODE
    return differs(
        "If the cluster has no such node, its hook always gets CONTINUE; an API server that cannot be reached is no "
        "reason to. For hooks of instances in no cluster, or in one that Spillway is not let into, see HooksWithoutNode."
    )


ANSWERS: Answers = {
    "dryRun": dry_run,
    "taintNode": taint,
    "TAINT_EFFECT": taint_effect,
    "enableOutOfServiceTaint": out_of_service,
    "excludeFromLoadBalancers": load_balancers,
    "deleteLocalData": local_data,
    "ignoreDaemonSets": daemon_sets,
    "podTerminationGracePeriod": pod_grace,
    "GRACE_PERIOD": not_needed("NTH never looked at it: the chart also sets POD_TERMINATION_GRACE_PERIOD, which wins."),
    "nodeTerminationGracePeriod": node_grace,
    "heartbeatInterval": heartbeat,
    "heartbeatUntil": heartbeat_until,
    "completeLifecycleActionDelaySeconds": delay,
    "deleteSqsMsgIfNodeNotFound": not_found,
    **dict.fromkeys(
        ("KUBE_API_QPS", "KUBE_API_BURST"),
        not_needed(
            "Nothing holds requests back but the API server itself, and deploy/optional/flow-control.yaml gives "
            "drains room there."
        ),
    ),
    "USE_APISERVER_CACHE": not_needed("A node's pods are listed once and then watched."),
}
