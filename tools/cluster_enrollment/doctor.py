"""Verdict of the function itself: would the next notice be handled in a cluster?"""

from __future__ import annotations

import time
from typing import Any

from cli import Failed
from cli.aws import Aws
from cli.stack import Stack

# An access entry takes some seconds to have an effect.
FRESH = {"no-access-entry", "not-in-group", "no-rights", "missing-right"}
TRIES, PAUSE_S = 6, 5.0
UNKNOWN = "unknown"


def verdict(aws: Aws, stack: Stack, cluster: str, is_fresh: bool) -> str:
    for left in reversed(range(TRIES)):
        try:
            report = ask(aws, stack, cluster)
        except (Failed, ValueError) as error:
            return f"{UNKNOWN}: {error}"
        if not (is_fresh and left and FRESH & {one["id"] for one in findings(report, "fail")}):
            break
        time.sleep(PAUSE_S)
    return in_words(report)


def in_words(report: dict[str, Any]) -> str:
    if "status" not in report:
        return f"{UNKNOWN}: {report.get('errorMessage', 'this is no report of the doctor')}"
    worst = [f"{one['id']} ({one['object']})" for one in findings(report, report["status"])]
    more = f" and {len(worst) - 1} more" if len(worst) > 1 else ""
    return f"{report['status']}{': ' + worst[0] + more if worst else ''}"


def is_green(verdict: str) -> bool:
    return verdict.startswith(("ok", "warn"))


def findings(report: dict[str, Any], severity: str) -> list[dict[str, Any]]:
    return [one for check in report.get("checks", []) for one in check.get("findings", []) if one["severity"] == severity]


def ask(aws: Aws, stack: Stack, cluster: str) -> dict[str, Any]:
    """The report of one cluster; without a name, of all."""
    report: dict[str, Any] = aws.invoke(stack.function, {"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": cluster}})[1]
    return report
