"""Reads Helm values: YAML or JSON, a file's text or the output of `helm get values`."""

from __future__ import annotations

import json
import re
from typing import Any

from cli import Failed

# `helm get values` writes the first, `helm get values --all` the second.
HEADER = re.compile(r"\A\s*(?:USER-SUPPLIED|COMPUTED) VALUES:[ \t]*\r?\n")
NTH = "aws-node-termination-handler"
# The kinds that have Helm values in them: those of Flux, of Argo CD and of K3s.
MANIFESTS = ("HelmRelease", "Application", "ApplicationSet", "HelmChart")
WITHOUT_YAML = (
    "this is YAML, and Python has no PyYAML here to read it. Either install that (pip install pyyaml), or use JSON: "
    "helm get values RELEASE --namespace NAMESPACE --output json | tools/spillway from-nth"
)
NAMES = {type(None): "null", bool: "true or false", str: "a text", list: "a list", dict: "a map"}
NAMES |= dict.fromkeys((int, float), "a number")


class Unusable(Failed):
    """The input cannot be used. The text says why, and what to do if that is not plain."""


def read(text: str) -> dict[str, Any]:
    """The values as a map, or the one manifest that has them. `null` is what Helm says for a release that was given none."""
    text = HEADER.sub("", text)
    if not re.search(r"(?m)^\s*[^#\s]", text):
        raise Unusable("it is empty. Did the command before it fail? Helm says null for a release without values")
    return mapped(parse(text), "it")


def mapped(values: Any, what: str) -> dict[str, Any]:
    if not isinstance(values, (dict, type(None))):
        raise Unusable(f"{what} is {named(values)}, where Helm values are a map")
    return values or {}


def parse(text: str) -> Any:
    try:
        is_json = text.lstrip()[0] in "{[" or text.strip() == "null"
        values = json.loads(text, object_pairs_hook=without_repeats) if is_json else from_yaml(text)
        # Also finds a map that holds itself, which YAML can say.
        json.dumps(values, default=str)
    except RecursionError:
        raise Unusable("it is nested too deeply") from None
    except ValueError as error:
        raise Unusable(f"it cannot be read: {error}") from None
    return values


def from_yaml(text: str) -> Any:
    """The only document; of several, the manifest that has NTH's values."""
    try:
        import yaml
    except ImportError:
        raise Unusable(WITHOUT_YAML) from None

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> Any:
            """Refuses two equal keys, of which PyYAML keeps the last without a word."""
            node = super().compose_mapping_node(anchor)
            place = f"in the map from line {node.start_mark.line + 1} on, "
            without_repeats([(str(key.value), value) for key, value in node.value], place)
            return node

    try:
        documents = [document for document in yaml.load_all(text, Loader) if document is not None]
    except yaml.YAMLError as error:
        raise Unusable(f"it is broken YAML: {error}") from None
    return the_manifest(documents) if len(documents) > 1 else next(iter(documents), None)


def the_manifest(documents: list[Any]) -> Any:
    """Flux' and Argo's files often have a HelmRepository, a Namespace or other releases beside it."""
    found = [one for one in documents if isinstance(one, dict) and one.get("kind") in MANIFESTS]
    of_nth = [one for one in found if NTH in json.dumps(one, default=str)]
    for these in (found, of_nth):
        if len(these) == 1:
            return these[0]
    raise Unusable(f"it has {len(documents)} documents, of which {len(of_nth)} are a {' or '.join(MANIFESTS)} of {NTH}: give one alone")


def without_repeats(pairs: list[tuple[str, Any]], place: str = "") -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(values := dict(pairs)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Unusable(f"{place}{twice} is in it twice; which of the two counts?")
    return values


def named(value: Any) -> str:
    return NAMES.get(type(value), f"a {type(value).__name__}")
