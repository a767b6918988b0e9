"""A report as the function answers or logs it, version 2 (docs/self-test.schema.json)."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from cli import Failed

VERSION = 2


class NoReport(Failed):
    """Input that is no report of the doctor."""


class Status(IntEnum):
    """Result of a check; the worst is the greatest."""

    OK = 0
    SKIPPED = 1
    WARN = 2
    UNKNOWN = 3
    FAIL = 4


class Severity(IntEnum):
    INFO = 0
    WARN = 1
    UNKNOWN = 2
    FAIL = 3


@dataclass(frozen=True)
class Finding:
    severity: Severity
    object: str
    what: str
    to_do: str
    command: str | None
    nodes: tuple[str, ...]
    nodes_count: int


@dataclass(frozen=True)
class Check:
    id: str
    cluster: str | None
    status: Status
    what: str
    findings: tuple[Finding, ...]
    findings_cut: int
    # Each node that is held up, and by which objects.
    nodes: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Report:
    time: str
    took_ms: int
    status: Status
    checks: tuple[Check, ...]


def shown(value: Any) -> Any:
    """A text or document with a mark in place of each control character, and of each one that turns the direction of a line."""
    if isinstance(value, str):
        return "".join("\ufffd" if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp") else one for one in value)
    if isinstance(value, list):
        return [shown(one) for one in value]
    return {shown(key): shown(one) for key, one in value.items()} if isinstance(value, dict) else value


def read(text: str) -> Report:
    """The report in a text: the text itself, or the last one in its lines, as a log has it, with a line for each check."""
    for candidates in ([text], text.splitlines()):
        values = [value for one in candidates if isinstance(value := _json(one), dict)]
        told = [value for value in values if "self_test" in value or "errorMessage" in value]
        if told and "errorMessage" in told[-1]:
            raise NoReport(f"the function failed: {told[-1]['errorMessage']}")
        if told:
            return _report(_joined([value for value in told if "self_test" in value]))
    raise NoReport("this is no report of the doctor's")


def _json(text: str) -> Any:
    try:
        return shown(json.loads(text))
    except ValueError:
        return None


def _joined(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The last self-test of these lines, with the checks of all of its lines. A check with many findings has several."""
    last = lines[-1]
    of_last = [line for line in lines if all(line.get(name) == last.get(name) for name in ("request_id", "time"))]
    if len(of_last) == 1:
        return last
    checks: dict[tuple[Any, Any], dict[str, Any]] = {}
    for check in (check for line in of_last for check in line["checks"]):
        known = checks.setdefault((check["id"], check.get("cluster")), {**check, "findings": [], "nodes": []})
        known["findings"] += check.get("findings", [])
        known["nodes"] += check.get("nodes", [])
    return {**last, "checks": list(checks.values())}


def _report(value: dict[str, Any]) -> Report:
    if value["self_test"] != VERSION:
        raise NoReport(f"this is a report of version {value['self_test']}, and this tool knows version {VERSION}")
    try:
        return Report(
            time=value["time"],
            took_ms=value["took_ms"],
            status=Status[value["status"].upper()],
            checks=tuple(_check(check) for check in value["checks"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise NoReport(f"the report is not whole: {error!r}") from None


def _check(value: dict[str, Any]) -> Check:
    return Check(
        id=value["id"],
        cluster=value.get("cluster"),
        status=Status[value["status"].upper()],
        what=value["what"],
        findings=tuple(_finding(finding) for finding in value.get("findings", [])),
        findings_cut=value.get("findings_cut", 0),
        nodes=tuple((node["node"], tuple(node["because"])) for node in value.get("nodes", [])),
    )


def _finding(value: dict[str, Any]) -> Finding:
    nodes = tuple(value.get("nodes", []))
    return Finding(
        severity=Severity[value["severity"].upper()],
        object=value["object"],
        what=value["what"],
        to_do=value["to_do"],
        command=value.get("command"),
        nodes=nodes,
        nodes_count=value.get("nodes_count", len(nodes)),
    )
