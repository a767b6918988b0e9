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
    text = (files.root() / "template.yaml").read_text()
    section = re.search(r"^Parameters:\n(.*?)^\S", text, re.DOTALL | re.MULTILINE)
    _, *parts = re.split(r"^  (\w+):\n", section[1] if section else "", flags=re.MULTILINE)
    return {name: _parameter(body) for name, body in zip(parts[::2], parts[1::2])}


def refusal(value: str, parameter: dict[str, Any]) -> str | None:
    if len(value.encode()) > LONGEST:
        return f"a parameter holds {LONGEST} bytes, and this has {len(value.encode())}"
    allowed, pattern = parameter.get("AllowedValues"), parameter.get("AllowedPattern")
    if allowed and value not in allowed:
        return f"it takes {' or '.join(allowed)}"
    words = value.split(",") if parameter.get("Type") == "CommaDelimitedList" else [value]
    if pattern and not all(re.search(pattern, word) for word in words):
        return f"it takes what {pattern} matches"
    least, most = parameter.get("MinValue"), parameter.get("MaxValue")
    if least and most and not (re.fullmatch(r"\d+", value) and int(least) <= int(value) <= int(most)):
        return f"it takes {least} to {most}"
    return None


def _parameter(body: str) -> dict[str, Any]:
    pairs = re.findall(r"^    (\w+): (.+)", body, re.MULTILINE)
    return {key: _words(text) if text.startswith("[") else text.strip('"') for key, text in pairs}


def _words(text: str) -> list[str]:
    return [word.strip(' "') for word in text[1:-1].split(",")]
