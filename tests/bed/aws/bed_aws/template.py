"""The product's template, as written or as the SAM transform left it: what the bed makes its part of the stack from."""

from pathlib import Path
from typing import Any

import yaml


class TemplateError(Exception):
    """The template says something that the bed cannot carry out."""


class _Loader(yaml.CSafeLoader):
    """Reads CloudFormation's short forms: `!Ref X` as {"Ref": X}, `!Sub X` as {"Fn::Sub": X}."""


def _short_form(loader: _Loader, name: str, node: yaml.Node) -> dict[str, Any]:
    long_form = name if name in ("Ref", "Condition") else f"Fn::{name}"
    if isinstance(node, yaml.ScalarNode):
        return {long_form: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {long_form: loader.construct_sequence(node, deep=True)}
    return {long_form: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _short_form)


def read(template: Path) -> dict[str, Any]:
    """All of it, with nothing resolved."""
    return parsed(template.read_text())


def parsed(text: str) -> dict[str, Any]:
    whole: dict[str, Any] = yaml.load(text, _Loader)
    return whole
