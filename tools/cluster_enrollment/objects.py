"""Decides what becomes of the objects of `deploy/` in a cluster. What somebody else has made stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli import files as project
from cli.stack import Stack

from .step import Part, State, Step, kubectl

MANAGER = "spillway-enroll"
DEPLOY = project.root() / "deploy"
OPTIONAL = sorted(file.name for file in (DEPLOY / "optional").glob("*.yaml"))
# Files that a parameter needs, and the parameter's value that needs none.
NEEDED = {"node-events.yaml": ("NodeEvents", "false"), "karpenter.yaml": ("Karpenter", "off")}
# Each object has it, also one that a later version no longer brings.
LABEL = "app.kubernetes.io/name=spillway"
KINDS = "clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings"
# What `kubectl apply` is known by, which server-side does not say that it applies.
CLIENT_SIDE = "kubectl-client-side-apply"

Object = dict[str, Any]


def files(stack: Stack, extra: list[str]) -> dict[Path, bool]:
    """All files; `true` for those that every cluster gets. Any other is only brought up to date."""
    wanted = {name for name, (parameter, without) in NEEDED.items() if stack.parameters.get(parameter, without) != without}
    optional = {DEPLOY / "optional" / name: name in wanted or name in extra for name in OPTIONAL}
    return {DEPLOY / "rbac.yaml": True, **optional}


def apply(wanted: Object, dry: bool = False) -> Any:
    options = ["--server-side", f"--field-manager={MANAGER}", *(["--dry-run=server"] if dry else [])]
    return kubectl("apply", *options, "--filename=-", stdin=json.dumps(wanted))


def enroll(wanted: Object, file: Path, live: Object | None, after: Object | str | None) -> Step:
    """`after`: what the server says that applying would leave, or why it refuses. Asked for if the object is ours only."""
    take_over = f"kubectl apply --server-side --force-conflicts --field-manager={MANAGER} -f {file.relative_to(DEPLOY.parent)}"
    what = title(wanted)
    if live is None:
        return _step(what, State.TO_DO, "", apply(wanted))
    others = appliers(live) - {MANAGER}
    if not is_ours(live):
        if covers(live, wanted):
            return _step(what, State.THERE, "somebody else has made it")
        by = f", which {' and '.join(sorted(others))} manages" if others else ""
        return _step(what, State.TOLD, f"it differs from this version's{by}", take_over)
    if isinstance(after, str):
        return _step(what, State.TOLD, f"somebody else has changed it: {after}", take_over)
    if after is not None and _content(after) != _content(live):
        return _step(what, State.TO_DO, "it is another version's", apply(wanted))
    return _step(what, State.THERE)


def remove(live: Object) -> Step:
    what, delete = title(live), kubectl("delete", live["kind"], live["metadata"]["name"])
    others = appliers(live) - {MANAGER}
    if not is_ours(live):
        return _step(what, State.TOLD, "this tool has not made it", delete)
    if others:
        return _step(what, State.TOLD, f"{' and '.join(sorted(others))} manages it too", delete)
    return _step(what, State.TO_DO, "", delete)


def is_ours(live: Object | None) -> bool:
    return live is not None and MANAGER in appliers(live)


def appliers(live: Object) -> set[str]:
    """Managers that declare the object, without those that change a field or the status."""
    entries = [one for one in live["metadata"].get("managedFields", []) if not one.get("subresource")]
    return {one["manager"] for one in entries if one.get("operation") == "Apply" or one["manager"] == CLIENT_SIDE}


def covers(live: Any, wanted: Any) -> bool:
    """Returns `true` if `live` has all of `wanted`; the server adds defaults."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(key in live and covers(live[key], value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(covers, live, wanted))
    return bool(live == wanted)


def title(one: Object) -> str:
    return f"{one['kind']} {one['metadata']['name']}"


def key(one: Object) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


def _content(one: Object) -> Object:
    """Without what the server writes at each change, and without the status, which is its own business."""
    metadata = {name: value for name, value in one["metadata"].items() if name not in ("managedFields", "resourceVersion", "generation")}
    return {**{name: value for name, value in one.items() if name != "status"}, "metadata": metadata}


def _step(what: str, state: State, why: str = "", *commands: Any) -> Step:
    return Step(Part.RIGHTS, what, state, why, commands)
