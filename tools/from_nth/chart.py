"""NTH's Helm chart: every value it knows, as of chart 0.27.6 (NTH 1.25.6), and what became of older ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """What a value has to be. The words stand in errors."""

    FLAG = "true or false"
    NUMBER = "a whole number"
    TEXT = "a text"
    MAP = "a map"
    LIST = "a list"


@dataclass(frozen=True)
class Value:
    """One value of the chart."""

    kind: Kind
    default: Any
    # The environment variable that the chart makes of it. `extraEnv` comes after it and wins.
    variable: str | None = None


def flag(default: bool, variable: str | None = None) -> Value:
    return Value(Kind.FLAG, default, variable)


def number(default: int | None, variable: str | None = None) -> Value:
    return Value(Kind.NUMBER, default, variable)


def text(default: str | None, variable: str | None = None) -> Value:
    return Value(Kind.TEXT, default, variable)


MAP = Value(Kind.MAP, {})
LIST = Value(Kind.LIST, [])
# Fargate's nodes have no instance, so this leaves none out that could be lost.
OFF_FARGATE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["fargate"]}
                    ]
                }
            ]
        }
    }
}
NTHS_TAG = "aws-node-termination-handler/managed"

# A map of which the chart knows each key; of the other maps every key goes to Kubernetes as it is.
GROUPS = ("image", "serviceAccount", "rbac", "serviceMonitor", "podMonitor")

CHART: dict[str, Value] = {
    # Both modes.
    "image.repository": text("public.ecr.aws/aws-ec2/aws-node-termination-handler"),
    "image.tag": text(""),
    "image.pullPolicy": text("IfNotPresent"),
    "image.pullSecrets": LIST,
    "nameOverride": text(""),
    "fullnameOverride": text(""),
    "serviceAccount.create": flag(True),
    "serviceAccount.name": text(None),
    "serviceAccount.annotations": MAP,
    "rbac.create": flag(True),
    "rbac.pspEnabled": flag(True),
    "customLabels": MAP,
    "podLabels": MAP,
    "podAnnotations": MAP,
    "podSecurityContext": MAP,
    "securityContext": MAP,
    "terminationGracePeriodSeconds": number(None),
    "resources": MAP,
    "nodeSelector": MAP,
    "affinity": MAP,
    "tolerations": LIST,
    "topologySpreadConstraints": LIST,
    "extraEnv": LIST,
    "probes": MAP,
    "logLevel": text("info", "LOG_LEVEL"),
    "logFormatVersion": number(1, "LOG_FORMAT_VERSION"),
    "jsonLogging": flag(False, "JSON_LOGGING"),
    "enablePrometheusServer": flag(False, "ENABLE_PROMETHEUS_SERVER"),
    "prometheusServerPort": number(9092, "PROMETHEUS_SERVER_PORT"),
    "dryRun": flag(False, "DRY_RUN"),
    "cordonOnly": flag(False, "CORDON_ONLY"),
    "taintNode": flag(False, "TAINT_NODE"),
    "enableOutOfServiceTaint": flag(False, "ENABLE_OUT_OF_SERVICE_TAINT"),
    "excludeFromLoadBalancers": flag(False, "EXCLUDE_FROM_LOAD_BALANCERS"),
    "deleteLocalData": flag(True, "DELETE_LOCAL_DATA"),
    "ignoreDaemonSets": flag(True, "IGNORE_DAEMON_SETS"),
    "podTerminationGracePeriod": number(-1, "POD_TERMINATION_GRACE_PERIOD"),
    "nodeTerminationGracePeriod": number(120, "NODE_TERMINATION_GRACE_PERIOD"),
    "emitKubernetesEvents": flag(False, "EMIT_KUBERNETES_EVENTS"),
    "kubernetesEventsExtraAnnotations": text("", "KUBERNETES_EVENTS_EXTRA_ANNOTATIONS"),
    "webhookURL": text("", "WEBHOOK_URL"),
    "webhookURLSecretName": text(""),
    "webhookHeaders": text("", "WEBHOOK_HEADERS"),
    "webhookProxy": text("", "WEBHOOK_PROXY"),
    "webhookTemplate": text("", "WEBHOOK_TEMPLATE"),
    "webhookTemplateConfigMapName": text(""),
    "webhookTemplateConfigMapKey": text(""),
    "enableSqsTerminationDraining": flag(False, "ENABLE_SQS_TERMINATION_DRAINING"),
    # Queue mode.
    "completeLifecycleActionDelaySeconds": number(-1, "COMPLETE_LIFECYCLE_ACTION_DELAY_SECONDS"),
    "replicas": number(1),
    "strategy": MAP,
    "podDisruptionBudget": MAP,
    "serviceMonitor.create": flag(False),
    "serviceMonitor.namespace": text(None),
    "serviceMonitor.labels": MAP,
    "serviceMonitor.interval": text("30s"),
    "serviceMonitor.sampleLimit": number(5000),
    "priorityClassName": text("system-cluster-critical"),
    "awsRegion": text("", "AWS_REGION"),
    "queueURL": text("", "QUEUE_URL"),
    "workers": number(10, "WORKERS"),
    "checkASGTagBeforeDraining": flag(True, "CHECK_ASG_TAG_BEFORE_DRAINING"),
    "checkTagBeforeDraining": flag(True, "CHECK_TAG_BEFORE_DRAINING"),
    "managedAsgTag": text(NTHS_TAG, "MANAGED_ASG_TAG"),
    "managedTag": text(NTHS_TAG, "MANAGED_TAG"),
    "useProviderId": flag(False, "USE_PROVIDER_ID"),
    "deleteSqsMsgIfNodeNotFound": flag(False, "DELETE_SQS_MSG_IF_NODE_NOT_FOUND"),
    "heartbeatInterval": number(-1, "HEARTBEAT_INTERVAL"),
    "heartbeatUntil": number(-1, "HEARTBEAT_UNTIL"),
    "sqsMsgVisibilityTimeoutSec": number(20, "SQS_MSG_VISIBILITY_TIMEOUT_SEC"),
    # IMDS mode.
    "targetNodeOs": text("linux"),
    "linuxPodLabels": MAP,
    "windowsPodLabels": MAP,
    "linuxPodAnnotations": MAP,
    "windowsPodAnnotations": MAP,
    "updateStrategy": MAP,
    "daemonsetPriorityClassName": text("system-node-critical"),
    "podMonitor.create": flag(False),
    "podMonitor.namespace": text(None),
    "podMonitor.labels": MAP,
    "podMonitor.interval": text("30s"),
    "podMonitor.sampleLimit": number(5000),
    "useHostNetwork": flag(True),
    "dnsPolicy": text(""),
    "dnsConfig": MAP,
    "linuxDnsPolicy": text("ClusterFirstWithHostNet"),
    "windowsDnsPolicy": text("ClusterFirst"),
    "daemonsetNodeSelector": MAP,
    "linuxNodeSelector": MAP,
    "windowsNodeSelector": MAP,
    "daemonsetAffinity": Value(Kind.MAP, OFF_FARGATE),
    "linuxAffinity": MAP,
    "windowsAffinity": MAP,
    "daemonsetTolerations": Value(Kind.LIST, [{"operator": "Exists"}]),
    "linuxTolerations": LIST,
    "windowsTolerations": LIST,
    "enableProbesServer": flag(False, "ENABLE_PROBES_SERVER"),
    "metadataTries": number(3, "METADATA_TRIES"),
    "enableSpotInterruptionDraining": flag(True, "ENABLE_SPOT_INTERRUPTION_DRAINING"),
    "enableASGLifecycleDraining": flag(True, "ENABLE_ASG_LIFECYCLE_DRAINING"),
    "enableScheduledEventDraining": flag(True, "ENABLE_SCHEDULED_EVENT_DRAINING"),
    "enableRebalanceMonitoring": flag(False, "ENABLE_REBALANCE_MONITORING"),
    "enableRebalanceDraining": flag(False, "ENABLE_REBALANCE_DRAINING"),
    # For NTH's own tests.
    "awsEndpoint": text("", "AWS_ENDPOINT"),
    "awsAccessKeyID": text(None, "AWS_ACCESS_KEY_ID"),
    "awsSecretAccessKey": text(None, "AWS_SECRET_ACCESS_KEY"),
    "instanceMetadataURL": text("", "INSTANCE_METADATA_URL"),
    "procUptimeFile": text("/proc/uptime", "UPTIME_FROM_FILE"),
}

# What the chart never sets and people set in `extraEnv`. Named as they are there.
VARIABLES: dict[str, Value] = {
    "TAINT_EFFECT": text("NoSchedule"),
    "KUBE_API_QPS": number(5),
    "KUBE_API_BURST": number(10),
    "USE_APISERVER_CACHE": flag(False),
    "GRACE_PERIOD": number(-1),
    "WEBHOOK_TEMPLATE_FILE": text(""),
    "NODE_NAME": text(None),
    "POD_NAME": text(None),
    "NAMESPACE": text(None),
    "PROBES_SERVER_PORT": number(8080),
    "PROBES_SERVER_ENDPOINT": text("/healthz"),
    "KUBERNETES_SERVICE_HOST": text(None),
    "KUBERNETES_SERVICE_PORT": text(None),
}
VALUE_OF_VARIABLE = {value.variable: key for key, value in CHART.items() if value.variable}

# Values of charts before 2022, and what this chart has instead.
FORMER: dict[str, str] = {
    "assumeAsgTagPropagation": "checkTagBeforeDraining",
    "gracePeriod": "podTerminationGracePeriod",
    "nodeSelectorTermsOs": "nodeSelector",
    "nodeSelectorTermsArch": "nodeSelector",
    "probesServerPort": "probes",
    "probesServerEndpoint": "probes",
    "linuxUpdateStrategy": "updateStrategy",
    "windowsUpdateStrategy": "updateStrategy",
    "linuxAnnotations": "linuxPodAnnotations",
    "windowsAnnotations": "windowsPodAnnotations",
}

# What a file with none but these in it might as well be another chart's.
COMMON = frozenset(
    "affinity dnsConfig dnsPolicy extraEnv fullnameOverride image logLevel nameOverride nodeSelector podAnnotations "
    "podDisruptionBudget podLabels podMonitor podSecurityContext priorityClassName probes rbac replicas resources "
    "securityContext serviceAccount serviceMonitor strategy terminationGracePeriodSeconds tolerations "
    "topologySpreadConstraints updateStrategy".split()
)

# Never shown: a webhook's address and headers let whoever has them write to the channel.
SECRET = frozenset({"webhookURL", "webhookHeaders", "webhookProxy", "awsAccessKeyID", "awsSecretAccessKey"})
