"""What version 1 of the receipt called otherwise: a log keeps it for as long as it is kept. Pure."""

from __future__ import annotations

from typing import Any

FIELDS = {"owner": "managed_by"}
OF_THE_WINDOW = {"from_ms": "start_ms", "to_ms": "end_ms", "goes_ms": "deadline_ms"}
OF_A_POD = {"budget": "blocked_by", "asked_ms": "requested_ms", "told_ms": "accepted_ms"}
FATES = {"left": "lost", "would-be-held": "would-be-blocked"}
# What a drain that went on had left was the next invocation's.
FATES_IF_CONTINUED = {**FATES, "left": "remaining"}
ANSWERS = {"held-by-budget": "blocked-by-budget", "held-by-several-budgets": "blocked-by-several-budgets"}


def in_version_2(document: dict[str, Any]) -> dict[str, Any]:
    """A receipt of version 1 with the names of version 2. What is no object or no list stays for the reader to refuse."""
    renamed = _renamed(document, FIELDS)
    fates = FATES_IF_CONTINUED if document.get("ending") == "continued" else FATES
    changes = {
        "window": lambda window: _renamed(window, OF_THE_WINDOW),
        "pods": lambda pods: [_pod(pod, fates) for pod in pods] if isinstance(pods, list) else pods,
        "earlier": lambda earlier: [_earlier(one) for one in earlier] if isinstance(earlier, list) else earlier,
    }
    return {name: changes[name](value) if name in changes else value for name, value in renamed.items()}


def _pod(pod: Any, fates: dict[str, str]) -> Any:
    renamed = _renamed(pod, OF_A_POD)
    if isinstance(renamed, dict):
        if isinstance(renamed.get("fate"), str):
            renamed["fate"] = fates.get(renamed["fate"], renamed["fate"])
        if "answers" in renamed:
            renamed["answers"] = _renamed(renamed["answers"], ANSWERS)
    return renamed


def _earlier(one: Any) -> Any:
    return {**one, "pods": _renamed(one["pods"], FATES_IF_CONTINUED)} if isinstance(one, dict) and "pods" in one else one


def _renamed(value: Any, names: dict[str, str]) -> Any:
    return {names.get(name, name): inner for name, inner in value.items()} if isinstance(value, dict) else value
