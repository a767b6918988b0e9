"""Asks the function itself whether the next notice would be handled in a cluster."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from .aws import Aws, AwsError, Unusable
from .stack import Stack

# As long as the function may take.
PATIENCE_S = 900
# An access entry takes some seconds to have an effect.
FRESH = {"no-access-entry", "not-in-group", "no-rights", "missing-right"}
TRIES, PAUSE_S = 6, 5.0
UNKNOWN = "unknown"


def verdict(aws: Aws, stack: Stack, cluster: str, is_fresh: bool) -> str:
    """In a few words, the worst first."""
    for left in reversed(range(TRIES)):
        try:
            report = ask(aws, stack, cluster)
        except (AwsError, Unusable, ValueError) as error:
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
    """A warning is no failure."""
    return verdict.startswith(("ok", "warn"))


def findings(report: dict[str, Any], severity: str) -> list[dict[str, Any]]:
    return [one for check in report.get("checks", []) for one in check.get("findings", []) if one["severity"] == severity]


def ask(aws: Aws, stack: Stack, cluster: str) -> dict[str, Any]:
    """The report of one cluster; without a name, of all."""
    event = {"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": cluster}}
    with tempfile.TemporaryDirectory(prefix="spillway-enroll-") as folder:
        question, answer = Path(folder) / "question.json", Path(folder) / "answer.json"
        question.write_text(json.dumps(event))
        # A file, because versions 1 and 2 of the CLI read the text of a payload differently.
        payload = f"fileb://{question}"
        patience = f"--cli-read-timeout={PATIENCE_S}"
        aws.call("lambda", "invoke", "--function-name", stack.function, "--payload", payload, patience, str(answer))
        report: dict[str, Any] = json.loads(answer.read_text())
        return report
