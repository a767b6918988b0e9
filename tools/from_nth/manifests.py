"""Helm values inside a manifest of Flux, Argo CD or K3s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import helm_set
from .values import Unusable, parse


def unwrapped(document: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The values, and what they were in; nothing if they are values already."""
    kind = document.get("kind")
    if kind in READERS:
        return f"the {kind} {name(document)}", READERS[kind](document.get("spec") or {})
    if kind is not None and "apiVersion" in document:
        raise Unusable(f"it is the {kind} {name(document)}, which is not read here: give the Helm values in it alone, or helm get values")
    if isinstance(document.get("releases"), list):
        raise Unusable("it is a helmfile, which is not read here: give what holds in the end, by helm get values")
    return None, document


def name(document: dict[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("name", "without a name"))


def of_flux(spec: dict[str, Any]) -> dict[str, Any]:
    if spec.get("valuesFrom"):
        raise Unusable("it takes values from elsewhere (valuesFrom): give what holds in the end, by helm get values")
    return mapped(spec.get("values"), "spec.values")


def of_argo(spec: dict[str, Any]) -> dict[str, Any]:
    sources = [spec.get("source") or {}, *(spec.get("sources") or [])]
    charts = [source["helm"] for source in sources if source.get("helm")]
    if len(charts) != 1:
        raise Unusable(f"it has {len(charts)} sources with Helm values, where one is NTH's: give that one's values")
    helm = charts[0]
    if elsewhere := [key for key in ("fileParameters", "valueFiles") if helm.get(key)]:
        raise Unusable(f"it takes values from elsewhere ({', '.join(elsewhere)}): give what holds in the end")
    if helm.get("valuesObject") is not None:
        values = mapped(helm["valuesObject"], "helm.valuesObject")
    else:
        values = mapped(parse(helm["values"]) if helm.get("values") else None, "helm.values")
    return with_parameters(values, helm.get("parameters") or [])


def with_parameters(values: dict[str, Any], parameters: Any) -> dict[str, Any]:
    if not isinstance(parameters, list) or not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in parameters):
        raise Unusable("helm.parameters is no list of maps with a name")
    for one in parameters:
        text = str(one.get("value", ""))
        values = helm_set.put(values, one["name"], text if one.get("forceString") else helm_set.typed(text))
    return values


def mapped(values: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, (dict, type(None))):
        raise Unusable(f"{where} is no map, as Helm values are")
    return values or {}


READERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "HelmRelease": of_flux,
    "Application": of_argo,
    "ApplicationSet": lambda spec: of_argo((spec.get("template") or {}).get("spec") or {}),
    "HelmChart": lambda spec: mapped(parse(spec["valuesContent"]) if spec.get("valuesContent") else None, "spec.valuesContent"),
}
