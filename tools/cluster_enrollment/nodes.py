"""Decides what becomes of nodes that Spillway has cordoned when it goes: who else would give them back?

A node whose instance stays is given back, as the function does it: crates/core/src/node/uncordon.rs. One whose instance goes
is left to its drain.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from cli.times import parsed

from .step import Part, State, Step, kubectl

CLAIM = "spillway/claim"
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
# The function's field manager, by which a cordon is known for its own.
FUNCTION = "spillway"
REBALANCE, MAINTENANCE = "rebalance recommendation", "scheduled maintenance"
# So long after its deadline nothing drains any longer.
LATE = timedelta(minutes=10)


@dataclass(frozen=True)
class Instance:
    """The node's instance as AWS describes it; the defaults for one that has gone."""

    state: str = "terminated"
    # In its group; empty without one.
    lifecycle_state: str = ""
    # Maintenance that is neither over nor called off.
    has_maintenance: bool = False


def instance_id(node: dict[str, Any]) -> str:
    return node["spec"].get("providerID", "").rpartition("/")[2]


def claimed(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in nodes if CLAIM in one["metadata"].get("annotations", {})]


def remove(node: dict[str, Any], instance: Instance, now: datetime) -> Step:
    name, claim = node["metadata"]["name"], _claim(node)
    look = f"kubectl describe node {name}"
    if claim is None:
        return _step(name, State.TOLD, f"its annotation {CLAIM} cannot be read", look)
    if instance.state in ("stopped", "terminated"):
        return _step(name, State.THERE, f"its instance is {instance.state}: uncordon it if it comes back")
    if not _stays(claim, instance, now):
        why = f"it drains ({claim['notice']}): run it again when it has gone"
        return replace(_step(name, State.TOLD, why, look), drains=True)
    return _step(name, State.TO_DO, f"its instance stays ({claim['notice']})", give_back(node, claim))


def _stays(claim: dict[str, Any], instance: Instance, now: datetime) -> bool:
    in_service = instance.lifecycle_state in ("", "InService", "Standby")
    if instance.state != "running" or not in_service:
        return False
    if claim["notice"] == REBALANCE:
        return True
    if claim["notice"] == MAINTENANCE:
        return not instance.has_maintenance
    # Without a deadline a hook held it, and that is over: it is in service.
    until = parsed(claim.get("until"))
    return until is None or until + LATE < now


def give_back(node: dict[str, Any], claim: dict[str, Any]) -> Any:
    """Takes off what the claim says that we have put on, and nothing if the node has changed since."""
    metadata, spec = node["metadata"], node["spec"]
    operations = [{"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}]
    for at in reversed(range(len(spec.get("taints", [])))):
        if _text(spec["taints"][at]) in claim.get("taints", []):
            operations.append({"op": "remove", "path": f"/spec/taints/{at}"})
    operations.append({"op": "remove", "path": f"/metadata/annotations/{_escaped(CLAIM)}"})
    if metadata.get("labels", {}).get(EXCLUDED) == FUNCTION:
        operations.append({"op": "remove", "path": f"/metadata/labels/{_escaped(EXCLUDED)}"})
    if claim.get("cordoned") and spec.get("unschedulable") and _cordoned_by(node) == [FUNCTION]:
        operations.append({"op": "remove", "path": "/spec/unschedulable"})
    return kubectl("patch", "node", metadata["name"], "--type=json", f"--patch={json.dumps(operations)}")


def _claim(node: dict[str, Any]) -> dict[str, Any] | None:
    try:
        claim = json.loads(node["metadata"]["annotations"][CLAIM])
    except ValueError:
        return None
    return claim if isinstance(claim, dict) and isinstance(claim.get("notice"), str) else None


def _cordoned_by(node: dict[str, Any]) -> list[str]:
    entries = node["metadata"].get("managedFields", [])
    return [one["manager"] for one in entries if "f:unschedulable" in one.get("fieldsV1", {}).get("f:spec", {})]


def _text(taint: dict[str, str]) -> str:
    value = f"={taint['value']}" if "value" in taint else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _step(name: str, state: State, why: str, *commands: Any) -> Step:
    return Step(Part.NODES, f"node {name}", state, why, commands)
