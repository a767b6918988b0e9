"""template.yaml's parameters, read at each run.

A reader of its own, for the tool must run where no YAML library is; a test compares it with one.
"""

from __future__ import annotations

import re
from typing import Any

from cli import files

Parameters = dict[str, dict[str, Any]]
# CloudFormation's limit for the value of a parameter.
LONGEST = 4096


def parameters() -> Parameters:
    section = re.search(r"^Parameters:\n(.*?)^\S", (files.root() / "template.yaml").read_text(), re.DOTALL | re.MULTILINE)
    parts = re.split(r"^  (\w+):\n", section[1] if section else "", flags=re.MULTILINE)[1:]
    return {name: {key: _value(text) for key, text in re.findall(r"^    (\w+): (.+)", body, re.MULTILINE)} for name, body in zip(parts[::2], parts[1::2])}


def refusal(value: str, parameter: dict[str, Any]) -> str | None:
    if len(value.encode()) > LONGEST:
        return f"a parameter holds {LONGEST} bytes, and this has {len(value.encode())}"
    allowed, pattern, least, most = (parameter.get(key) for key in ("AllowedValues", "AllowedPattern", "MinValue", "MaxValue"))
    if allowed and value not in allowed:
        return f"it takes {' or '.join(allowed)}"
    words = value.split(",") if parameter.get("Type") == "CommaDelimitedList" else [value]
    if pattern and not all(re.search(pattern, word) for word in words):
        return f"it takes what {pattern} matches"
    if least and not (re.fullmatch(r"\d+", value) and int(least) <= int(value) <= int(most)):
        return f"it takes {least} to {most}"
    return None


def _value(text: str) -> Any:
    return [word.strip(' "') for word in text[1:-1].split(",")] if text.startswith("[") else text.strip('"')
