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


class Unusable(Failed):
    """The input cannot be used. The text says why, and what to do if that is not plain."""


def read(text: str) -> dict[str, Any]:
    """The values as a map, or the one manifest that has them. `null` is what Helm says for a release that was given none."""
    text = HEADER.sub("", text)
    if not text.strip():
        raise Unusable("it is empty. Did the command before it fail? Helm says null for a release without values")
    values = parse(text)
    if values is None and text.strip() != "null":
        raise Unusable("it has nothing but comments")
    if not isinstance(values, (dict, type(None))):
        raise Unusable(f"it is {named(values)} at the top, where Helm values are a map")
    return values or {}


def parse(text: str) -> Any:
    try:
        values = from_json(text) if text.lstrip()[0] in "{[" or text.strip() == "null" else from_yaml(text)
        # Also finds a map that holds itself, which YAML can say.
        json.dumps(values, default=str)
    except RecursionError:
        raise Unusable("it is nested too deeply") from None
    except ValueError as error:
        raise Unusable(f"it cannot be read: {error}") from None
    return values


def from_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise Unusable(f"it is broken JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None


def from_yaml(text: str) -> Any:
    """The only document; of several, the manifest that has NTH's values."""
    try:
        import yaml
    except ImportError:
        raise Unusable(WITHOUT_YAML) from None
    try:
        for document in yaml.compose_all(text, yaml.SafeLoader):
            refuse_repeats(document, set())
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise Unusable(f"it is broken YAML: {where}{error.problem}") from None
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


def refuse_repeats(node: Any, seen: set[int]) -> None:
    """Refuses two equal keys, of which PyYAML keeps the last without a word."""
    if node is None or isinstance(node.value, str) or id(node) in seen:
        return
    seen.add(id(node))
    keys: set[str] = set()
    for child in node.value:
        key, value = child if isinstance(child, tuple) else (None, child)
        if key is not None and isinstance(key.value, str):
            if key.value in keys:
                raise Unusable(f"line {key.start_mark.line + 1}: {key.value} is in it twice; which of the two counts?")
            keys.add(key.value)
        refuse_repeats(value, seen)


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise Unusable(f"{key} is in it twice; which of the two counts?")
        values[key] = value
    return values


def named(value: Any) -> str:
    names = {type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a map"}
    return names.get(type(value), f"a {type(value).__name__}")
