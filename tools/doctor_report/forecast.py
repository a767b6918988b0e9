"""Forecast of a drain: which pods of a node will hold it, by what, and for how long.

The times are those of a terminate hook (docs/what-happens.md#forced-in-time). It reads pods and budgets, and changes nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli import FINDING, FINE, Failed, counted, printable, stack
from cli.aws import Aws
from cli.table import aligned
from live_drains.api_server import ApiServer
from live_drains.blockers import annotated, blocker, covering
from live_drains.clusters import Context, EksCluster
from live_drains.drains import has_to_leave

Json = dict[str, Any]
DEFAULT_WAIT_S = 3600
# crates/core/src/drain/deadline: the margin for the kubelet, and the time for a budget before a pod is forced.
MARGIN_S, BUDGET_S, GRACE_S = 2, 600, 30
# A grace period below this does not hold anything worth a line.
WORTH_A_LINE_S = 60


@dataclass(frozen=True)
class Holder:
    pod: str
    by: str
    # Latest end of the hold, in seconds from the notice.
    until_s: int


def run(options: argparse.Namespace) -> int:
    wait_s = _longest_wait(options)
    with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
        cluster = EksCluster(options.cluster, options.region) if options.cluster else Context(None)
        api_server = ApiServer(cluster.kubectl(Path(folder)), Path(folder))
        try:
            names = options.node or _of_group(options, api_server)
            budgets = api_server.list("/apis/policy/v1/poddisruptionbudgets")
            found = {name: holders(_pods(api_server, name), budgets, wait_s) for name in names}
        finally:
            api_server.close()
    if options.output == "json":
        document = {name: [vars(one) for one in held] for name, held in found.items()}
        print(json.dumps({"longest_wait_s": wait_s, "nodes": document}, indent=2))
    else:
        print("\n\n".join(text(name, held, wait_s) for name, held in found.items()))
    return FINDING if any(found.values()) else FINE


def holders(pods: list[Json], budgets: list[Json], wait_s: int) -> list[Holder]:
    """Pods of a node that hold a drain by a terminate hook of this length, the longest hold first."""
    leaving = [pod for pod in pods if has_to_leave(pod["metadata"]) and _phase(pod) not in ("Succeeded", "Failed")]
    allowed = _allowed(budgets)
    found = []
    for pod in leaving:
        metadata = pod["metadata"]
        grace_s = (pod.get("spec") or {}).get("terminationGracePeriodSeconds", GRACE_S)
        forced_s = max(wait_s - grace_s - MARGIN_S, wait_s // 2)
        by, until_s = blocker(metadata, budgets), forced_s
        if annotated(metadata):
            until_s = min(forced_s, max(forced_s - BUDGET_S, wait_s // 2))
        elif by is None and (budget := _last_of_its_budget(metadata, budgets, allowed)):
            by = f"budget {budget}, which allows fewer pods than the node has"
        elif by is None and grace_s >= WORTH_A_LINE_S:
            by, until_s = f"its own grace period of {grace_s} s", 0
        if by:
            name = printable(f"{metadata.get('namespace', '')}/{metadata['name']}")
            found.append(Holder(name, printable(by), until_s + grace_s))
    return sorted(found, key=lambda one: (-one.until_s, one.pod))


def text(node: str, held: list[Holder], wait_s: int) -> str:
    if not held:
        return f"{printable(node)}: no pod holds a drain"
    longest = held[0].until_s
    head = f"{printable(node)}: {counted(len(held), 'pod')} can hold a drain, for up to {_minutes(longest)} of the hook's {_minutes(wait_s)}"
    rows = [("  POD", "HELD BY", "AT MOST"), *((f"  {one.pod}", one.by, _minutes(one.until_s)) for one in held)]
    return "\n".join([head, *aligned(rows)])


def _allowed(budgets: list[Json]) -> dict[str, int]:
    return {_name(one): (one.get("status") or {}).get("disruptionsAllowed") or 0 for one in budgets}


def _last_of_its_budget(pod: Json, budgets: list[Json], allowed: dict[str, int]) -> str | None:
    """The pod's only budget if earlier pods of the node use up all its disruptions; counts this pod."""
    names = [_name(one) for one in covering(pod, budgets)]
    if len(names) != 1:
        return None
    allowed[names[0]] -= 1
    return names[0] if allowed[names[0]] < 0 else None


def _name(budget: Json) -> str:
    return f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"


def _phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _pods(api_server: ApiServer, node: str) -> list[Json]:
    pods = api_server.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}", resourceVersion="0")
    if not pods and not api_server.list("/api/v1/nodes", only_metadata=True, fieldSelector=f"metadata.name={node}"):
        raise Failed(f"the cluster has no node {node}: give the name that kubectl get nodes prints, and the cluster")
    return pods


def _of_group(options: argparse.Namespace, api_server: ApiServer) -> list[str]:
    described = Aws(options.region).call("autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", options.group)
    if not described["AutoScalingGroups"]:
        raise Failed(f"there is no Auto Scaling group {options.group} in this Region: name another one with --region")
    instances = {one["InstanceId"] for one in described["AutoScalingGroups"][0]["Instances"]}
    nodes = api_server.list("/api/v1/nodes")
    names = [one["metadata"]["name"] for one in nodes if one["spec"].get("providerID", "").rpartition("/")[2] in instances]
    if not names:
        raise Failed(f"no node of the cluster is in the group {options.group}, which has {counted(len(instances), 'instance')}: name the cluster")
    return sorted(names)


def _longest_wait(options: argparse.Namespace) -> int:
    """HookMaxWaitS of the stack; its default without rights to read the stack."""
    try:
        return int(stack.read(Aws(options.region), options.stack).parameters.get("HookMaxWaitS", DEFAULT_WAIT_S))
    except Failed as error:
        print(f"spillway doctor: HookMaxWaitS={DEFAULT_WAIT_S} is assumed: {error}", file=sys.stderr)
        return DEFAULT_WAIT_S


def _minutes(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{round(seconds / 60)} min"
