"""Budgets and annotations that block the eviction of a pod. Pure."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def blocker(pod: Json, budgets: list[Json]) -> str | None:
    """The budget, or the pod's annotation; None if neither blocks it. `pod` is the pod's metadata."""
    if annotation := annotated(pod):
        return f"annotation {annotation}"
    of_pod = covering(pod, budgets)
    names = [f"{budget['metadata']['namespace']}/{budget['metadata']['name']}" for budget in of_pod]
    if len(of_pod) > 1:  # The API server evicts none of its pods, whatever the budgets allow.
        return f"several budgets ({', '.join(sorted(names))})"
    return f"budget {names[0]}" if of_pod and not _allowed(of_pod[0]) else None


def annotated(pod: Json) -> str | None:
    """The annotation that blocks the pod, as docs/what-happens.md names them."""
    annotations = pod.get("annotations") or {}
    if annotations.get("karpenter.sh/do-not-disrupt", "false") != "false":
        return "karpenter.sh/do-not-disrupt"
    if annotations.get("spillway/drain") == "wait":
        return "spillway/drain: wait"
    return "safe-to-evict" if annotations.get("cluster-autoscaler.kubernetes.io/safe-to-evict") == "false" else None


def covering(pod: Json, budgets: list[Json]) -> list[Json]:
    return [budget for budget in budgets if _covers(budget, pod)]


def _allowed(budget: Json) -> int:
    return (budget.get("status") or {}).get("disruptionsAllowed") or 0


def _covers(budget: Json, pod: Json) -> bool:
    if budget["metadata"].get("namespace") != pod.get("namespace"):
        return False
    selector = (budget.get("spec") or {}).get("selector")
    # None selects nothing, an empty one everything.
    return selector is not None and _selects(selector, pod.get("labels") or {})


def _selects(selector: Json, labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def _meets(expression: Json, labels: dict[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    return {"In": value in values, "NotIn": value not in values, "Exists": value is not None, "DoesNotExist": value is None}.get(
        expression["operator"], False
    )
