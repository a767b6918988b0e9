"""Parameters of Spillway for an installation of NTH."""

from __future__ import annotations

import json
from typing import Any

from .installation import Installation, placeholder
from .values import Unusable

# Our words for the notices, and which of them drain a node if nothing else is said. A test compares them with template.yaml.
NOTICES = ("spot", "capacity", "maintenance", "state-change", "terminate", "rebalance")
DRAIN_BY_DEFAULT = NOTICES[:-1]
# The parameters that name them.
LISTS = ("DrainOn", "CordonOn")
# Where the webhook's document is put.
WEBHOOK_PARAMETER = "/spillway/webhook"
# Spillway's own tag: groups move from NTH's to it, one at a time.
OWN_TAG = "spillway/managed"
# NTH ends each attempt to drain after this, if it was told nothing else.
NTHS_ATTEMPT_S = 120
LONGEST_HOOK_S = 172_800
# The chart's null for numbers.
UNSET = -1


def wanted(nth: Installation) -> dict[str, str]:
    taints = [word for value, word in (("taintNode", "nth"), ("enableOutOfServiceTaint", "out-of-service")) if nth[value]]
    found = {
        **lists(nth),
        "HookMaxWaitS": hook_max_wait(nth),
        "Webhook": WEBHOOK_PARAMETER if has_address(nth) else "",
        # Ours, where NTH leaves a node without a tag alone.
        "ManagedTag": OWN_TAG if nth.queue_mode and nth["checkTagBeforeDraining"] else "",
        "NodeSelector": node_selector(nth),
        "Taints": ",".join(taints),
        "LoadBalancers": "exclude" if nth["excludeFromLoadBalancers"] else "",
        "DryRun": "true" if nth["dryRun"] else "",
        "NodeEvents": "true" if nth["emitKubernetesEvents"] else "",
    }
    return {name: value for name, value in found.items() if value}


def lists(nth: Installation) -> dict[str, str]:
    """DrainOn and CordonOn, where they differ from the defaults."""
    doing = actions(nth)
    drain, cordon = ([notice for notice in NOTICES if doing[notice] == what] for what in ("drain", "cordon"))
    found = {} if tuple(drain) == DRAIN_BY_DEFAULT else {"DrainOn": ",".join(drain) or "off"}
    return found | ({"CordonOn": ",".join(cordon)} if cordon else {})


def actions(nth: Installation) -> dict[str, str]:
    """Action of NTH for each kind of notice; in queue mode the same for all."""
    act = "cordon" if nth["cordonOnly"] else "drain"
    if nth.queue_mode:
        return dict.fromkeys(NOTICES, act)
    rebalance = act if nth["enableRebalanceDraining"] else "cordon" if nth["enableRebalanceMonitoring"] else "ignore"
    return {
        "spot": act if nth["enableSpotInterruptionDraining"] else "ignore",
        "capacity": act,
        "maintenance": act if nth["enableScheduledEventDraining"] else "ignore",
        "state-change": act,
        "terminate": act if nth["enableASGLifecycleDraining"] else "ignore",
        "rebalance": rebalance,
    }


def selectors(nth: Installation) -> dict[str, dict[str, str]]:
    """The node selector of each DaemonSet of IMDS mode, as its template picks it."""
    return {
        system: nth[f"{system}NodeSelector"] or nth["nodeSelector"] or nth["daemonsetNodeSelector"]
        for system in ("linux", "windows")
        if system in nth["targetNodeOs"].lower()
    }


def node_selector(nth: Installation) -> str:
    """NodeSelector for IMDS mode, in which NTH drains the nodes that it runs on."""
    chosen = list(selectors(nth).values())
    if nth.queue_mode or not chosen or any(one != chosen[0] for one in chosen):
        return ""
    labels = ({"kubernetes.io/os": "windows"} if list(selectors(nth)) == ["windows"] else {}) | chosen[0]
    return ",".join(f"{key}={value}" for key, value in labels.items())


def heartbeats_until(nth: Installation) -> int | None:
    """Time for which NTH holds a hook with heartbeats; None without heartbeats."""
    if not nth.queue_mode or nth["heartbeatInterval"] == UNSET:
        return None
    return LONGEST_HOOK_S if nth["heartbeatUntil"] == UNSET else nth["heartbeatUntil"]


def hook_max_wait(nth: Installation) -> str:
    grace = nth["nodeTerminationGracePeriod"]
    limits = [limit for limit in (heartbeats_until(nth), grace if grace > NTHS_ATTEMPT_S else None) if limit is not None]
    return str(max(60, min(LONGEST_HOOK_S, *limits))) if limits else ""


def has_address(nth: Installation) -> bool:
    """Returns `true` for an address that Spillway can post to: not by plain HTTP."""
    return address_is_elsewhere(nth) or nth["webhookURL"].startswith("https://")


def address_is_elsewhere(nth: Installation) -> bool:
    """Returns `true` for an address in a Secret or behind a placeholder."""
    return bool(nth["webhookURLSecretName"] or "webhookURL" in nth.referred or placeholder(nth["webhookURL"]))


def document(nth: Installation, url: str = "", template: str = "") -> dict[str, Any]:
    """The webhook's document. What stands elsewhere in the cluster is handed in."""
    if not url and address_is_elsewhere(nth):
        found = placeholder(nth["webhookURL"])
        where = f"has the placeholder {found}" if found else "is in a Secret of the cluster"
        raise Unusable(f"the webhook's address {where}: give it by --webhook-url")
    for name in ("webhookHeaders", "webhookProxy"):
        if found := placeholder(nth[name]):
            raise Unusable(f"{name} has the placeholder {found}: write the value that takes its place")
    if not template and template_file(nth):
        raise Unusable("the webhook's template is in a ConfigMap of the cluster: give it by --webhook-template")
    found = {
        "url": url or nth["webhookURL"],
        "headers": nth["webhookHeaders"] and headers(nth["webhookHeaders"]),
        "proxy": nth["webhookProxy"],
        "template": template or nth["webhookTemplate"],
    }
    if not found["url"].startswith("https://"):
        raise Unusable("there is no webhook's address that begins with https://")
    return {name: value for name, value in found.items() if value}


def headers(written: str) -> dict[str, str]:
    try:
        parsed = json.loads(written)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict) or not all(isinstance(one, str) for one in parsed.values()):
        raise Unusable("webhookHeaders is no JSON map of texts, with which NTH's webhook cannot have worked: fix it")
    return parsed


def template_file(nth: Installation) -> bool:
    return bool(nth["webhookTemplateConfigMapName"] and nth["webhookTemplateConfigMapKey"])
