"""Helm values inside a manifest: a HelmRelease of Flux, an Application of Argo CD."""

from typing import Any

from .values import Unusable, parse


def unwrapped(document: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The values, and what they were in; nothing if they are values already."""
    match document.get("kind"):
        case "HelmRelease":
            return f"the HelmRelease {name(document)}", of_flux(document)
        case "Application":
            return f"the Application {name(document)}", of_argo(document)
        case _:
            return None, document


def name(document: dict[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("name", "without a name"))


def of_flux(document: dict[str, Any]) -> dict[str, Any]:
    spec = document.get("spec") or {}
    if spec.get("valuesFrom"):
        raise Unusable("it takes values from elsewhere (valuesFrom): give what holds in the end, by helm get values")
    return mapped(spec.get("values"), "spec.values")


def of_argo(document: dict[str, Any]) -> dict[str, Any]:
    spec = document.get("spec") or {}
    sources = [spec.get("source") or {}, *(spec.get("sources") or [])]
    charts = [source["helm"] for source in sources if source.get("helm")]
    if len(charts) != 1:
        raise Unusable(f"it has {len(charts)} sources with Helm values, where one is NTH's: give that one's values")
    helm = charts[0]
    if elsewhere := [key for key in ("parameters", "fileParameters", "valueFiles") if helm.get(key)]:
        raise Unusable(f"it takes values from elsewhere ({', '.join(elsewhere)}): give what holds in the end")
    if helm.get("valuesObject") is not None:
        return mapped(helm["valuesObject"], "helm.valuesObject")
    return mapped(parse(helm["values"]) if helm.get("values") else None, "helm.values")


def mapped(values: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, dict | None):
        raise Unusable(f"{where} is no map, as Helm values are")
    return values or {}
