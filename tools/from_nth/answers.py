"""What becomes of each value of the chart: a table of answers and rules, and `answer_of`, which follows the rules."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Union

from message_preview import command as preview

from . import parameters
from .chart import CHART
from .installation import Installation, placeholder
from .parameters import LISTS, NTHS_ATTEMPT_S, UNSET, WEBHOOK_PARAMETER, actions, has_address, heartbeats_until, selectors, template_file
from .values import Unusable


class Verdict(Enum):
    """In the order of the report: what needs a person comes last, next to the prompt."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_NEEDED = "not needed"
    NO_COUNTERPART = "no counterpart"
    NOT_IN_THIS_VERSION = "not in this version"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    verdict: Verdict
    # How it differs, why it is not needed, what to do.
    why: str
    # Our parameters that the value decides, alone or with others.
    parameters: tuple[str, ...] = ()
    # Commands to run for it.
    commands: tuple[str, ...] = ()


Condition = Union[str, Callable[[Installation], object]]
Rule = Union[Answer, Callable[[Installation], "Rule"]]


def answer_of(rule: Rule, nth: Installation) -> Answer:
    while not isinstance(rule, Answer):
        rule = rule(nth)
    return rule


def when(condition: Condition, then: Rule, otherwise: Rule) -> Rule:
    """A rule with two outcomes. A condition that is a text names a value of the chart that has to be set."""
    return lambda nth: then if (nth[condition] if isinstance(condition, str) else condition(nth)) else otherwise


def same(why: str, *parameters: str) -> Answer:
    return Answer(Verdict.SAME, why, parameters)


def differs(why: str, *parameters: str) -> Answer:
    return Answer(Verdict.DIFFERS, why, parameters)


def not_needed(why: str) -> Answer:
    return Answer(Verdict.NOT_NEEDED, why)


def no_counterpart(why: str) -> Answer:
    return Answer(Verdict.NO_COUNTERPART, why)


def queue_mode(nth: Installation) -> bool:
    return nth.queue_mode


def only_in_queue_mode(rule: Rule) -> Rule:
    return when(queue_mode, rule, not_needed("NTH does not look at it in IMDS mode."))


NOT_IN_QUEUE_MODE = not_needed("NTH does not look at it in queue mode.")
OTHERS = (
    "Whatever NTH did: nodes of managed node groups are drained only where EKS does not do it, Karpenter's and Auto "
    "Mode's not at all (see ManagedNodeGroups, Karpenter)."
)
NO_WEBHOOK = not_needed("There is no webhook's address, so NTH sent nothing.")
IN_THE_DOCUMENT = "It goes into the webhook's document."
PREVIEW = "tools/spillway preview --template FILE shows what becomes of a template, without sending anything."


def switch(value: str, notice: str, more: str = "") -> Rule:
    """A switch of IMDS mode for one kind of notice."""

    def rule(nth: Installation) -> Rule:
        doing = actions(nth)[notice]
        if nth.queue_mode and nth[value] is False:
            return differs(
                f"NTH does not look at it in queue mode, and {doing}s all the same; so does "
                f"Spillway. If you mean it, take {notice} out of DrainOn and CordonOn."
            )
        if nth.queue_mode:
            return NOT_IN_QUEUE_MODE
        decided_by = LISTS[doing == "cordon"]
        if not nth[value]:
            return same("Left alone, as NTH did." if doing == "ignore" else f"Only {doing}ed, as NTH did.", decided_by)
        return differs(more, decided_by) if more else same("Acted on, as NTH did.", decided_by)

    return rule


def former(name: str, successor: str) -> Rule:
    """Name of a value up to chart 0.18.5. Later charts also set its successor, which wins."""

    def rule(nth: Installation) -> Rule:
        if nth[name] == CHART[name].default or any(one.key == successor for one in nth.given):
            return not_needed(f"{successor} wins over it.")
        return Answer(
            Verdict.UNKNOWN,
            f"Depends on the chart's version (helm list shows it). Up to 0.18.5 NTH obeyed this value: rename it to {successor} "
            f"and run this again. From 0.19.0 on {successor} wins, and its default {json.dumps(CHART[successor].default)} holds.",
        )

    return only_in_queue_mode(rule)


def place(key: str, rule: Rule) -> Rule:
    """Nodes of NTH's pods: of interest in IMDS mode only, and if they are not all nodes, as by the chart's defaults."""
    limits = when(lambda nth: nth[key] == CHART[key].default, same("It leaves no node out."), rule)
    return when(queue_mode, not_needed("It placed NTH's own pod; nothing of Spillway runs in the cluster."), limits)


def secret(nth: Installation) -> Answer:
    """From a Secret of the cluster to Parameter Store."""
    reference = nth.referred.get("webhookURL", {}).get("secretKeyRef") or {}
    name = str(reference.get("name") or nth["webhookURLSecretName"])
    url = kubectl_get("secret", name, str(reference.get("key") or "webhookurl"), " | base64decode")
    return kept(f' --webhook-url "$({url})"', "The function reads no Secret of the cluster. ")


def kept(options: str, first: str = "") -> Answer:
    """The document is made of the values by this tool, so that no secret is shown or stands in a command."""
    return Answer(
        Verdict.DIFFERS,
        f"{first}Address, headers, proxy and template are one document, kept in Parameter Store and not in the stack, whose "
        "parameters are for many to read. Put it there before you deploy. A message goes out when a drain begins and when "
        "it ends; NTH's came after the drain.",
        ("Webhook",),
        (
            f"aws ssm put-parameter --type SecureString --tier Intelligent-Tiering --name {WEBHOOK_PARAMETER} "
            f'--value "$(tools/spillway from-nth --webhook{options} FILE)"',
        ),
    )


def kubectl_get(kind: str, name: str, key: str, then: str = "") -> str:
    """The command that prints one key of a Secret or ConfigMap."""
    template = shlex.quote(f'{{{{index .data "{key}"{then}}}}}')
    return f"kubectl get {kind} {shlex.quote(name)} --namespace NAMESPACE --output go-template={template}"


def address_with_placeholder(nth: Installation) -> Answer:
    found = placeholder(nth["webhookURL"])
    return kept(' --webhook-url "$URL"', f"It has the placeholder {found}, and this tool does not know what takes its place: URL. ")


def headers_can_be_read(nth: Installation) -> bool:
    try:
        return bool(parameters.headers(nth["webhookHeaders"]))
    except Unusable:
        return False


def message(nth: Installation) -> Answer:
    if not preview.program():
        return differs(f"It has not been rendered here. {PREVIEW} {IN_THE_DOCUMENT}", "Webhook")
    if failed := preview.rendered("template", nth["webhookTemplate"])[1]:
        return no_counterpart(f"It does not work as it is: {failed}. Fix it, and run this again.")
    return same(f"Works unchanged: it was rendered over sample drains, with NTH's fields and ours. {IN_THE_DOCUMENT}", "Webhook")


def config_map(nth: Installation) -> Answer:
    get = kubectl_get("configmap", nth["webhookTemplateConfigMapName"], nth["webhookTemplateConfigMapKey"])
    return Answer(
        Verdict.DIFFERS,
        f"The function reads no ConfigMap: the template's text goes into the webhook's document. {PREVIEW} The option to "
        "add to the command that makes the document:",
        ("Webhook",),
        (f'--webhook-template "$({get})"',),
    )


SECRET = when(lambda nth: "webhookURL" in nth.referred or nth["webhookURLSecretName"], secret, same("No webhook from a Secret."))
ADDRESS = when(
    "webhookURL",
    when(
        lambda nth: placeholder(nth["webhookURL"]),
        address_with_placeholder,
        when(
            has_address,
            kept(""),
            no_counterpart(
                "Spillway posts to addresses that begin with https:// only: whoever reads the address on the way can write to "
                "the channel. Give the webhook one, and run this again."
            ),
        ),
    ),
    same("No webhook."),
)
TEMPLATE_OF_CONFIG_MAP = when(
    lambda nth: nth["webhookTemplateConfigMapName"] or nth["webhookTemplateConfigMapKey"],
    when(
        template_file,
        when(has_address, config_map, NO_WEBHOOK),
        not_needed("NTH takes the ConfigMap only if both webhookTemplateConfigMapName and …Key name it."),
    ),
    same("No template from a ConfigMap."),
)
MONITOR = when(
    lambda nth: nth["serviceMonitor.create"] or nth["podMonitor.create"],
    no_counterpart("Nothing runs in the cluster to be scraped. A CloudWatch exporter brings our metrics to Prometheus."),
    not_needed("NTH was not scraped by it."),
)
SELECTOR = when(
    lambda nth: len({json.dumps(one, sort_keys=True) for one in selectors(nth).values()}) > 1,
    no_counterpart(
        "NTH's Linux and Windows pods ran on nodes with different labels, and NodeSelector is one selector. Give "
        "the nodes one label in common and name it in NodeSelector, or label the others spillway/ignore."
    ),
    differs("NTH drained the nodes it ran on; this names the same nodes by their labels.", "NodeSelector"),
)
PLACED = no_counterpart(
    "NTH drained the nodes it ran on, and this was part of where. Say it as labels in NodeSelector (key=value, key in "
    "(a,b), !key), or label the nodes that are to be left alone spillway/ignore."
)
CHECKED = only_in_queue_mode(
    when(
        "checkTagBeforeDraining",
        differs(
            "A tag of its own, on an instance or on its Auto Scaling group, so that one group at a time moves from NTH's tag to "
            "it (docs/from-nth.md). With NTH's own tag both would act on the same nodes.",
            "ManagedTag",
        ),
        same("No tag is asked for, unless ManagedTag names one."),
    )
)
POD = not_needed("It is about NTH's own pods; nothing of Spillway runs in the cluster.")
TESTING = not_needed("It is for NTH's own tests. To try Spillway without AWS: make demo, make bed (docs/drills.md).")
PROBE = not_needed("Nothing runs between notices, so there is nothing to probe.")
ROLE = "The function has a role of its own, by template.yaml."

# Values that share a rule.
SHARED: list[tuple[str, Rule]] = [
    (
        "image.repository image.tag image.pullPolicy image.pullSecrets nameOverride fullnameOverride customLabels podLabels "
        "podAnnotations podSecurityContext securityContext terminationGracePeriodSeconds resources topologySpreadConstraints "
        "replicas strategy podDisruptionBudget priorityClassName linuxPodLabels windowsPodLabels linuxPodAnnotations "
        "windowsPodAnnotations updateStrategy daemonsetPriorityClassName useHostNetwork dnsPolicy dnsConfig linuxDnsPolicy "
        "windowsDnsPolicy",
        POD,
    ),
    ("probes enableProbesServer PROBES_SERVER_PORT PROBES_SERVER_ENDPOINT", PROBE),
    ("serviceAccount.create serviceAccount.name", not_needed(ROLE)),
    ("rbac.create rbac.pspEnabled", not_needed("The rights in the cluster: kubectl apply -f deploy/.")),
    ("awsEndpoint awsAccessKeyID awsSecretAccessKey instanceMetadataURL procUptimeFile", TESTING),
    ("NODE_NAME POD_NAME NAMESPACE", not_needed("The node comes from the notice.")),
    ("KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT", not_needed("The cluster's endpoint comes from eks:DescribeCluster.")),
    (
        "KUBE_API_QPS KUBE_API_BURST",
        not_needed("Nothing holds requests back but the API server itself, and deploy/optional/flow-control.yaml gives drains room there."),
    ),
    ("webhookTemplateConfigMapName webhookTemplateConfigMapKey", TEMPLATE_OF_CONFIG_MAP),
    *((f"{kind}.{name}", MONITOR) for kind in ("serviceMonitor", "podMonitor") for name in "create namespace labels interval sampleLimit".split()),
    *((key, place(key, SELECTOR)) for key in ("nodeSelector", "daemonsetNodeSelector", "linuxNodeSelector", "windowsNodeSelector")),
    *(
        (key, place(key, PLACED))
        for kind in ("affinity", "tolerations")
        for key in (kind, *(f"{of}{kind.capitalize()}" for of in ("daemonset", "linux", "windows")))
    ),
]

ANSWERS: dict[str, Rule] = {
    **{key: rule for keys, rule in SHARED for key in keys.split()},
    # Notices: which NTH acted on, for which nodes.
    "enableSqsTerminationDraining": when(
        queue_mode,
        differs(
            "The notices come from EventBridge to the function, with no queue between. What NTH got was decided by "
            "the rules of its queue, not by its values. It acted on each rebalance recommendation that came, and "
            "could not be told otherwise: where its queue has no rule for them, or you do not want it, give "
            "--set DrainOn=spot,capacity,maintenance,state-change,terminate. If it has a rule for launch actions, add --set "
            "Launch=ABANDON. NTH completed every hook that came; Spillway completes those that Hooks names, by default "
            "spillway: give --hook NAME for each terminate hook of your groups (aws autoscaling "
            f"describe-lifecycle-hooks lists them). {OTHERS}",
            *LISTS,
        ),
        differs(
            "NTH ran on each node and drained that one. Spillway gets the notices of all instances of the account and "
            f"Region, and drains the nodes of every cluster that it is let into. {OTHERS}"
        ),
    ),
    "cordonOnly": when(
        "cordonOnly",
        differs("A choice for each kind of notice. Capacity notices, which NTH does not know, are told the same.", *LISTS),
        same("Nodes are drained."),
    ),
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
    "enableRebalanceMonitoring": when(
        lambda nth: nth["enableRebalanceDraining"] and not nth.queue_mode,
        not_needed("enableRebalanceDraining goes further, and holds."),
        switch(
            "enableRebalanceMonitoring",
            "rebalance",
            "The cordon is undone after an hour if no interruption follows; NTH left it for ever.",
        ),
    ),
    "enableRebalanceDraining": switch(
        "enableRebalanceDraining",
        "rebalance",
        "The node is uncordoned after an hour if no interruption follows; NTH left it cordoned for ever.",
    ),
    "checkTagBeforeDraining": CHECKED,
    "managedTag": when(
        lambda nth: nth.queue_mode and not nth["checkTagBeforeDraining"],
        not_needed("checkTagBeforeDraining is false, so NTH asked for no tag."),
        CHECKED,
    ),
    "checkASGTagBeforeDraining": former("checkASGTagBeforeDraining", "checkTagBeforeDraining"),
    "managedAsgTag": former("managedAsgTag", "managedTag"),
    "useProviderId": not_needed("Spillway always knows the node by the instance id in its provider id."),
    "targetNodeOs": when(
        queue_mode,
        NOT_IN_QUEUE_MODE,
        when(
            lambda nth: list(selectors(nth)) == ["windows"],
            differs("NTH ran on Windows nodes only; this names them by their label.", "NodeSelector"),
            differs(
                "Spillway drains nodes of every system. If Windows nodes have to be left alone, add kubernetes.io/os=linux "
                "to NodeSelector."
            ),
        ),
    ),
    "queueURL": not_needed("There is no queue. Take it and its rules away when NTH has gone: docs/from-nth.md."),
    "awsRegion": not_needed("Spillway works in the Region of its stack: sam deploy --region. Deploy it there, once for each Region."),
    "workers": not_needed("Each notice has an invocation of its own; Lambda starts as many as there are notices."),
    "sqsMsgVisibilityTimeoutSec": not_needed("There is no queue. Spillway tries again within the notice's own time."),
    "metadataTries": not_needed("No instance metadata is read."),
    # The drain: the pods, the node, the hook.
    "dryRun": when(
        "dryRun",
        differs("Spillway's dry run touches nothing at all. NTH's went on to complete hooks, send heartbeats and delete messages.", "DryRun"),
        same("What it does is real."),
    ),
    "taintNode": when(
        "taintNode",
        same("NTH's own keys, so that tolerations and alerts go on working. Taints=spillway has ours instead.", "Taints"),
        same("Nodes get no taint."),
    ),
    "TAINT_EFFECT": when(
        "taintNode",
        lambda nth: {
            "NoSchedule": same("The effect of the taint."),
            **dict.fromkeys(
                ("PreferNoSchedule", "NoExecute"),
                no_counterpart(
                    "Spillway's taint is always NoSchedule: the node is cordoned as well, and NoExecute throws pods off past every "
                    "PodDisruptionBudget."
                ),
            ),
        }.get(nth["TAINT_EFFECT"], differs("It is no taint's effect; NTH took NoSchedule instead, and so does Spillway.")),
        not_needed("taintNode is false, so there was no taint."),
    ),
    "enableOutOfServiceTaint": when(
        "enableOutOfServiceTaint",
        differs(
            "Only when EC2 says that the instance has stopped and the node is not ready, and taken off when it is back. "
            "NTH set it after each drain that succeeded, on a node that still ran.",
            "Taints",
        ),
        same("Nodes do not get the out-of-service taint."),
    ),
    "excludeFromLoadBalancers": when(
        "excludeFromLoadBalancers",
        differs("The same label, taken off again when the cordon is undone.", "LoadBalancers"),
        same("Nodes do not get the label."),
    ),
    "deleteLocalData": when(
        "deleteLocalData",
        same("Pods with emptyDir volumes are evicted."),
        no_counterpart(
            "With false, one pod with an emptyDir stopped the whole drain. Spillway evicts such pods. Those that have to "
            "stay as long as they can: give them the annotation "
            'cluster-autoscaler.kubernetes.io/safe-to-evict: "false", and Spillway holds them as a budget would.'
        ),
    ),
    "ignoreDaemonSets": when(
        "ignoreDaemonSets",
        same("Pods of DaemonSets stay."),
        no_counterpart("With false, NTH's drain failed on every node that has a DaemonSet's pod. With Spillway they stay. Nothing to do."),
    ),
    "podTerminationGracePeriod": when(
        lambda nth: nth["podTerminationGracePeriod"] < 0,
        same("Each pod gets its own grace period."),
        no_counterpart(
            "Each pod gets its own grace period, cut only where the instance goes sooner. Where this was to lengthen or "
            "shorten it, set terminationGracePeriodSeconds in the pods."
        ),
    ),
    "GRACE_PERIOD": not_needed("NTH never looked at it: the chart also sets POD_TERMINATION_GRACE_PERIOD, which wins."),
    "nodeTerminationGracePeriod": when(
        lambda nth: nth["nodeTerminationGracePeriod"] <= NTHS_ATTEMPT_S,
        not_needed(
            "NTH gave up an attempt after this and began again. Spillway drains for as long as the notice leaves: two "
            "minutes for a spot interruption, HookMaxWaitS for a hook."
        ),
        differs(
            "For hooks only: a spot interruption leaves two minutes, whatever is said here. NTH gave up after this and "
            "left the hook to its timeout; Spillway completes it, with CONTINUE.",
            "HookMaxWaitS",
        ),
    ),
    "heartbeatInterval": only_in_queue_mode(
        when(
            lambda nth: nth["heartbeatInterval"] == UNSET,
            differs("Spillway always sends heartbeats while it drains, after half of the hook's timeout."),
            differs("Heartbeats come after half of the hook's own timeout, whatever that is: one that is late does no harm."),
        )
    ),
    "heartbeatUntil": only_in_queue_mode(
        when(
            lambda nth: heartbeats_until(nth) is None,
            not_needed("heartbeatInterval is not set, so NTH sent no heartbeats."),
            differs("How long a hook is held in all; with nodeTerminationGracePeriod, the shorter of the two.", "HookMaxWaitS"),
        )
    ),
    "completeLifecycleActionDelaySeconds": when(
        lambda nth: nth["completeLifecycleActionDelaySeconds"] <= 0,
        same("The hook is completed as soon as the node is empty."),
        differs(
            "The hook is completed when the pods have gone and their volumes are detached, for which it waits up to 60 s. If the "
            "delay was for load balancers, set LoadBalancers=wait. There is no fixed delay."
        ),
    ),
    "deleteSqsMsgIfNodeNotFound": only_in_queue_mode(
        differs(
            "If the cluster has no such node, its hook always gets CONTINUE; an API server that cannot be reached is no "
            "reason to. For hooks of instances in no cluster, or in one that Spillway is not let into, see HooksWithoutNode."
        )
    ),
    "USE_APISERVER_CACHE": not_needed("A node's pods are listed once and then watched."),
    # Messages: webhook, events, logs, metrics.
    "webhookURL": when(
        lambda nth: "webhookURL" in nth.referred,
        SECRET,
        when("webhookURLSecretName", not_needed("webhookURLSecretName wins over it."), ADDRESS),
    ),
    "webhookURLSecretName": when("webhookURLSecretName", SECRET, same("No webhook from a Secret.")),
    "webhookHeaders": when(
        "webhookHeaders",
        when(
            has_address,
            when(
                headers_can_be_read,
                same(f"They take the place of the default ones. {IN_THE_DOCUMENT}", "Webhook"),
                no_counterpart("It is no JSON map of texts, with which NTH's webhook cannot have worked. Fix it, and run this again."),
            ),
            NO_WEBHOOK,
        ),
        same("The default headers."),
    ),
    "webhookProxy": when(
        "webhookProxy",
        when(
            has_address,
            differs(f"The function has to reach it: if it is in a VPC, so must the function be (SubnetIds). {IN_THE_DOCUMENT}", "Webhook"),
            NO_WEBHOOK,
        ),
        same("No proxy."),
    ),
    "webhookTemplate": when(
        template_file,
        not_needed("The template of the ConfigMap wins over it."),
        when(
            "webhookTemplate",
            when(has_address, message, NO_WEBHOOK),
            differs("NTH's text is the default; ours is a Slack message with blocks."),
        ),
    ),
    "WEBHOOK_TEMPLATE_FILE": no_counterpart("The function reads no file. Give the template's text by --webhook-template, with --webhook."),
    "emitKubernetesEvents": when(
        "emitKubernetesEvents",
        differs(
            "Spillway's events have reasons and a reporter of their own: change alerts on NTH's reasons (docs/what-happens.md "
            "lists ours). They come after the drain, and on pods only if they were evicted or blocked. They need a right more: "
            "kubectl apply -f deploy/optional/node-events.yaml",
            "NodeEvents",
        ),
        same("No Kubernetes events."),
    ),
    "kubernetesEventsExtraAnnotations": when(
        "kubernetesEventsExtraAnnotations",
        no_counterpart("Events have no annotations of your own. Who looks for them has to look for the events' reasons."),
        same("No further annotations."),
    ),
    "logLevel": lambda nth: {
        "error": no_counterpart("Receipts and metrics are lines of level INFO, so there is nothing above it. Nothing to do."),
        "debug": no_counterpart("The log is of level INFO: the receipt has each pod and each step. Nothing to do."),
    }.get(nth["logLevel"].lower(), same("The same level.")),
    "logFormatVersion": not_needed("The log has a format of its own: docs/receipt.md."),
    "jsonLogging": not_needed("The log is always JSON, in CloudWatch."),
    "enablePrometheusServer": when(
        "enablePrometheusServer",
        differs(
            "There is nothing to scrape: metrics come to CloudWatch with the log, in the namespace Spillway, and the stack brings "
            "a dashboard and alarms on them (docs/metrics.md). What you have on actions_total and events_error_total has to "
            "be made again; a CloudWatch exporter brings ours to Prometheus."
        ),
        same("Nothing is scraped. There are CloudWatch metrics."),
    ),
    "prometheusServerPort": not_needed("Nothing is scraped."),
    # NTH itself in the cluster.
    "serviceAccount.annotations": not_needed(f"{ROLE} The role that is named here can go with NTH."),
    "extraEnv": differs("Each variable has a line of its own."),
}
