"""Helm values inside a manifest of Flux, Argo CD or K3s."""

from __future__ import annotations

import json
import re
from typing import Any

from .values import Unusable, mapped, parse

# A name of `helm.parameters`, which Argo CD hands to Helm's --set: `image.tag`, `extraEnv[0].name`, `a\.b`.
STEP = re.compile(r"((?:\\.|[^.\[\]\\])+)|\[(\d+)\]")


def unwrapped(document: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The values, and what they were in; nothing if they are values already."""
    kind = document.get("kind")
    if kind is None:
        return None, document
    manifest = f"the {kind} {(document.get('metadata') or {}).get('name', 'without a name')}"
    spec = document.get("spec") or {}
    if kind == "HelmRelease":
        refuse_values_elsewhere(spec, "valuesFrom")
        return manifest, mapped(spec.get("values"), "spec.values")
    if kind == "HelmChart":
        return manifest, mapped(parse(spec.get("valuesContent") or "{}"), "spec.valuesContent")
    if kind in ("Application", "ApplicationSet"):
        return manifest, of_argo(spec if kind == "Application" else (spec.get("template") or {}).get("spec") or {})
    raise Unusable(f"it is {manifest}, which is not read here: give the Helm values in it alone, or helm get values")


def of_argo(spec: dict[str, Any]) -> dict[str, Any]:
    sources = [spec.get("source") or {}, *(spec.get("sources") or [])]
    charts = [source["helm"] for source in sources if source.get("helm")]
    if len(charts) != 1:
        raise Unusable(f"it has {len(charts)} sources with Helm values, where one is NTH's: give that one's values")
    helm = charts[0]
    refuse_values_elsewhere(helm, "fileParameters", "valueFiles")
    given = parse(helm.get("values") or "{}") if helm.get("valuesObject") is None else helm["valuesObject"]
    values = mapped(given, "helm.values")
    for one in helm.get("parameters") or []:
        text = str(one.get("value", ""))
        steps = [int(index) if index else re.sub(r"\\(.)", r"\1", key) for key, index in STEP.findall(one["name"])]
        values = put(values, steps, text if one.get("forceString") else typed(text))
    return values


def refuse_values_elsewhere(holder: dict[str, Any], *keys: str) -> None:
    if elsewhere := [key for key in keys if holder.get(key)]:
        where = ", ".join(elsewhere)
        raise Unusable(f"it takes values from elsewhere ({where}): give what holds in the end, by helm get values")


def put(into: Any, steps: list[int | str], value: Any) -> Any:
    if not steps:
        return value
    step, *rest = steps
    if isinstance(step, int):
        into = list(into) if isinstance(into, list) else []
        into += [None] * (step + 1 - len(into))
        into[step] = put(into[step], rest, value)
    else:
        into = dict(into) if isinstance(into, dict) else {}
        into[step] = put(into.get(step), rest, value)
    return into


def typed(text: str) -> Any:
    if re.fullmatch(r"true|false|null|0|-?[1-9]\d*", text):
        return json.loads(text)
    is_list = text.startswith("{") and text.endswith("}")
    return [typed(one.strip()) for one in text[1:-1].split(",") if one] if is_list else text
