"""template.yaml's parameters, read at each run, so that the tool always knows what this version has.

A reader of its own, for the tool must run where no YAML library is; a test compares it with one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from cli import files

# CloudFormation's limit for the value of a parameter.
LONGEST = 4096


@dataclass(frozen=True)
class Parameter:
    default: str | None = None
    allowed: tuple[str, ...] = ()
    pattern: str | None = None
    least: float | None = None
    most: float | None = None
    longest: int | None = None
    # Each of its words is matched by itself.
    is_list: bool = False

    def refuses(self, value: str) -> str | None:
        if len(value.encode()) > LONGEST:
            return f"a parameter holds {LONGEST} bytes, and this has {len(value.encode())}"
        if self.longest is not None and len(value) > self.longest:
            return f"it holds {self.longest} characters, and this has {len(value)}"
        if self.allowed and value not in self.allowed:
            return f"it takes {' or '.join(self.allowed)}"
        words = value.split(",") if self.is_list else [value]
        if self.pattern and not all(re.search(self.pattern, word) for word in words):
            return f"it takes what {self.pattern} matches"
        if self.least is not None and self.most is not None:
            if not re.fullmatch(r"-?\d+", value) or not self.least <= int(value) <= self.most:
                return f"it takes {self.least:g} to {self.most:g}"
        return None


def parameters(template: Path | None = None) -> dict[str, Parameter]:
    section = re.search(r"^Parameters:\n(.*?)^\S", (template or files.root() / "template.yaml").read_text(), re.DOTALL | re.MULTILINE)
    text = section[1] if section else ""
    parts = re.split(r"^  ([A-Za-z0-9]+):\n", text, flags=re.MULTILINE)[1:]
    return {name: parameter(body) for name, body in zip(parts[::2], parts[1::2])}


def parameter(body: str) -> Parameter:
    """Reads one parameter from the lines below its name."""
    body = re.sub(r"\n      - ([^\n]*)", r" \1,", body)
    value = dict(re.findall(r"^    (\w+): (\[[^\]]*\]|[^\n]*)", body, re.MULTILINE))
    return Parameter(
        default=scalar(value["Default"]) if "Default" in value else None,
        allowed=tuple(scalar(word) for word in value.get("AllowedValues", "").strip("[]").split(",") if word.strip()),
        pattern=scalar(value["AllowedPattern"]) if "AllowedPattern" in value else None,
        least=float(value["MinValue"]) if "MinValue" in value else None,
        most=float(value["MaxValue"]) if "MaxValue" in value else None,
        longest=int(value["MaxLength"]) if "MaxLength" in value else None,
        is_list=value.get("Type") == "CommaDelimitedList",
    )


def scalar(written: str) -> str:
    written = written.strip()
    if written.startswith('"'):
        return json.loads(written)
    return written[1:-1].replace("''", "'") if written.startswith("'") else written
