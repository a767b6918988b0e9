"""Helm's `--set`, which Argo CD makes of `helm.parameters`: `image.tag`, `extraEnv[0].name`, `a\\.b`."""

from __future__ import annotations

import re
from typing import Any

from .values import Unusable

STEP = re.compile(r"((?:\\.|[^.\[\]\\])+)|\[(\d+)\]")
# Helm's own limit.
LONGEST_LIST = 65_536


def put(values: Any, name: str, value: Any) -> Any:
    steps = [int(index) if index else re.sub(r"\\(.)", r"\1", key) for key, index in STEP.findall(name)]
    if not steps:
        raise Unusable(f"helm.parameters has {name!r}, which is no name of a value")
    return _put(values, steps, value)


def typed(text: str) -> Any:
    if text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text]
    if re.fullmatch(r"0|[+-]?[1-9]\d*", text):
        return int(text)
    if text.startswith("{") and text.endswith("}"):
        return [typed(one.strip()) for one in text[1:-1].split(",")] if text != "{}" else []
    return text


def _put(into: Any, steps: list[int | str], value: Any) -> Any:
    step, *rest = steps
    if isinstance(step, int):
        if step > LONGEST_LIST:
            raise Unusable(f"helm.parameters has the index {step}, and Helm takes {LONGEST_LIST}")
        into = list(into) if isinstance(into, list) else []
        into += [None] * (step + 1 - len(into))
        into[step] = _put(into[step], rest, value) if rest else value
    else:
        into = dict(into) if isinstance(into, dict) else {}
        into[step] = _put(into.get(step), rest, value) if rest else value
    return into
