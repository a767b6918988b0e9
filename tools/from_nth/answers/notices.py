"""Which notices NTH acted on, for which nodes, and what it did."""

from __future__ import annotations

import json
from collections.abc import Callable

from ..chart import CHART
from ..installation import Installation
from ..parameters import LISTS, actions, selectors
from .answer import NOT_IN_IMDS_MODE, NOT_IN_QUEUE_MODE, Answer, Answers, Verdict, differs, no_counterpart, not_needed, same

OTHERS = (
    "Whatever NTH did: nodes of managed node groups are drained only where EKS does not do it, Karpenter's and Auto "
    "Mode's not at all (see ManagedNodeGroups, Karpenter)."
)


def mode(nth: Installation) -> Answer:
    if nth.queue_mode:
        return differs(
            "The notices come from EventBridge to the function, with no queue between. What NTH got was decided by "
            "the rules of its queue, not by its values. It acted on each rebalance recommendation that came, and "
            "could not be told otherwise: where its queue has no rule for them, or you do not want it, give "
            "--set DrainOn=spot,capacity,maintenance,state-change,terminate. If it has a rule for launch actions, add --set "
            "Launch=ABANDON. NTH completed every hook that came; Spillway completes those that Hooks names, by default "
            "spillway: give --hook NAME for each terminate hook of your groups (aws autoscaling "
            f"describe-lifecycle-hooks lists them). {OTHERS}",
            *LISTS,
        )
    return differs(
        "NTH ran on each node and drained that one. Spillway gets the notices of all instances of the account and "
        f"Region, and drains the nodes of every cluster that it is let into. {OTHERS}"
    )


def cordon_only(nth: Installation) -> Answer:
    if not nth["cordonOnly"]:
        return same("Nodes are drained.")
    return differs(
        "A choice for each kind of notice. Capacity notices, which NTH does not know, are told the same.", *LISTS
    )


def switch(value: str, notice: str, more: str = "") -> Callable[[Installation], Answer]:
    """A switch of IMDS mode for one kind of notice."""

    def answer(nth: Installation) -> Answer:
        if nth.queue_mode and nth[value] is False:
            return differs(
                f"NTH does not look at it in queue mode, and {actions(nth)[notice]}s all the same; so does "
                f"Spillway. If you mean it, take {notice} out of DrainOn and CordonOn."
            )
        if nth.queue_mode:
            return NOT_IN_QUEUE_MODE
        doing = actions(nth)[notice]
        decided_by = LISTS[doing == "cordon"]
        if not nth[value]:
            return same("Left alone, as NTH did." if doing == "ignore" else f"Only {doing}ed, as NTH did.", decided_by)
        return differs(more, decided_by) if more else same("Acted on, as NTH did.", decided_by)

    return answer


def monitoring(nth: Installation) -> Answer:
    if nth["enableRebalanceDraining"] and not nth.queue_mode:
        return not_needed("enableRebalanceDraining goes further, and holds.")
    return switch(
        "enableRebalanceMonitoring",
        "rebalance",
        "The cordon is undone after an hour if no interruption follows; NTH left it for ever.",
    )(nth)


def checked(nth: Installation) -> Answer:
    if not nth.queue_mode:
        return NOT_IN_IMDS_MODE
    if not nth["checkTagBeforeDraining"]:
        return same("No tag is asked for, unless ManagedTag names one.")
    return differs(
        "A tag of its own, on an instance or on its Auto Scaling group, so that one group at a time moves from NTH's tag to "
        "it (docs/from-nth.md). With NTH's own tag both would act on the same nodes.",
        "ManagedTag",
    )


def tag(nth: Installation) -> Answer:
    if nth.queue_mode and not nth["checkTagBeforeDraining"]:
        return not_needed("checkTagBeforeDraining is false, so NTH asked for no tag.")
    return checked(nth)


def former(name: str, successor: str) -> Callable[[Installation], Answer]:
    """Name of a value up to chart 0.18.5. Later charts also set its successor, which wins."""

    def answer(nth: Installation) -> Answer:
        if not nth.queue_mode:
            return NOT_IN_IMDS_MODE
        if nth[name] == CHART[name].default or any(one.key == successor for one in nth.given):
            return not_needed(f"{successor} wins over it.")
        return Answer(
            Verdict.UNKNOWN,
            f"Depends on the chart's version (helm list shows it). Up to 0.18.5 NTH obeyed this value: rename it to {successor} "
            f"and run this again. From 0.19.0 on {successor} wins, and its default {json.dumps(CHART[successor].default)} holds.",
        )

    return answer


def place(key: str, answer: Callable[[Installation], Answer]) -> Callable[[Installation], Answer]:
    """Where NTH's pods ran: of interest in IMDS mode only, and if it is not everywhere, as by the chart's defaults."""

    def answer_if_it_limits(nth: Installation) -> Answer:
        if nth.queue_mode:
            return not_needed("It placed NTH's own pod; nothing of Spillway runs in the cluster.")
        return same("It leaves no node out.") if nth[key] == CHART[key].default else answer(nth)

    return answer_if_it_limits


def selector(nth: Installation) -> Answer:
    chosen = list(selectors(nth).values())
    if any(one != chosen[0] for one in chosen):
        return no_counterpart(
            "NTH's Linux and Windows pods ran on nodes with different labels, and NodeSelector is one selector. Give "
            "the nodes one label in common and name it in NodeSelector, or label the others spillway/ignore."
        )
    return differs("NTH drained the nodes it ran on; this names the same nodes by their labels.", "NodeSelector")


def systems(nth: Installation) -> Answer:
    if nth.queue_mode:
        return NOT_IN_QUEUE_MODE
    if list(selectors(nth)) == ["windows"]:
        return differs("NTH ran on Windows nodes only; this names them by their label.", "NodeSelector")
    return differs(
        "Spillway drains nodes of every system. If Windows nodes have to be left alone, add kubernetes.io/os=linux "
        "to NodeSelector."
    )


PLACED = no_counterpart(
    "NTH drained the nodes it ran on, and this was part of where. Say it as labels in NodeSelector (key=value, key in "
    "(a,b), !key), or label the nodes that are to be left alone spillway/ignore."
)
SELECTORS = ("nodeSelector", "daemonsetNodeSelector", "linuxNodeSelector", "windowsNodeSelector")
AFFINITIES = ("affinity", "daemonsetAffinity", "linuxAffinity", "windowsAffinity")
TOLERATIONS = ("tolerations", "daemonsetTolerations", "linuxTolerations", "windowsTolerations")

ANSWERS: Answers = {
    "enableSqsTerminationDraining": mode,
    "cordonOnly": cordon_only,
    "enableSpotInterruptionDraining": switch("enableSpotInterruptionDraining", "spot"),
    "enableScheduledEventDraining": switch(
        "enableScheduledEventDraining",
        "maintenance",
        "NTH drained as soon as the event was there, often days early; Spillway begins MaintenanceLeadS (an hour) "
        "before the start, and undoes it when AWS calls it off.",
    ),
    "enableASGLifecycleDraining": switch(
        "enableASGLifecycleDraining",
        "terminate",
        "NTH in IMDS mode never completed the hook, so it ran to its timeout; Spillway completes it when the node is "
        "empty, if Hooks names it (--hook NAME). The group needs a terminate hook (docs/install.md).",
    ),
    "enableRebalanceMonitoring": monitoring,
    "enableRebalanceDraining": switch(
        "enableRebalanceDraining",
        "rebalance",
        "The node is uncordoned after an hour if no interruption follows; NTH left it cordoned for ever.",
    ),
    "checkTagBeforeDraining": checked,
    "managedTag": tag,
    "checkASGTagBeforeDraining": former("checkASGTagBeforeDraining", "checkTagBeforeDraining"),
    "managedAsgTag": former("managedAsgTag", "managedTag"),
    "useProviderId": not_needed("Spillway always knows the node by the instance id in its provider id."),
    "targetNodeOs": systems,
    **{key: place(key, selector) for key in SELECTORS},
    **{key: place(key, lambda _: PLACED) for key in (*AFFINITIES, *TOLERATIONS)},
    "queueURL": not_needed("There is no queue. Take it and its rules away when NTH has gone: docs/from-nth.md."),
    "awsRegion": not_needed(
        "Spillway works in the Region of its stack: sam deploy --region. Deploy it there, once for each Region."
    ),
    "workers": not_needed("Each notice has an invocation of its own; Lambda starts as many as there are notices."),
    "sqsMsgVisibilityTimeoutSec": not_needed("There is no queue. Spillway tries again within the notice's own time."),
    "metadataTries": not_needed("No instance metadata is read."),
}
