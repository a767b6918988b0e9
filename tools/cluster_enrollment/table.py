"""Results of a run, for a person and for a pipeline."""

from __future__ import annotations

import json
from typing import Any

from cli.table import aligned
from doctor_report.report import shown

from .enrolment import Result
from .step import Part, State, Step

MARKS = {State.THERE: "=", State.TO_DO: "~", State.DONE: "+", State.TOLD: "!", State.FAILED: "x"}
HEAD = ("CLUSTER", "ACCESS", "RIGHTS", "HOOKS", "DOCTOR")


def steps(result: Result) -> str:
    """A cluster's steps, each with what the reader can do about it. What is there already is left out."""
    lines = [line for step in result.steps if step.state is not State.THERE for line in _lines(step)]
    return "\n".join(shown(line) for line in [result.cluster, *(lines or ["  = nothing to do"])])


def table(results: list[Result]) -> str:
    rows = [HEAD, *(_row(result) for result in results)]
    return "\n".join(aligned(rows))


def as_json(results: list[Result], remarks: list[str], code: int) -> str:
    return json.dumps({"exit_code": code, "remarks": remarks, "clusters": [_document(result) for result in results]}, indent=2)


def _row(result: Result) -> tuple[str, ...]:
    groups = len(result.with_hook) + len(result.without_hook)
    hooks = f"{len(result.with_hook)} of {groups} groups" if groups else "no groups"
    verdict = shown(_line(result.verdict or "not asked"))
    return (result.cluster, word(result, Part.ACCESS), word(result, Part.RIGHTS), hooks, verdict)


def word(result: Result, part: Part) -> str:
    states = {step.state for step in result.of(part)}
    order = (State.FAILED, State.TOLD, State.TO_DO, State.DONE, State.THERE)
    return next((state.value for state in order if state in states), "nothing")


def _lines(step: Step) -> list[str]:
    lines = [f"  {MARKS[step.state]} {step.what}{': ' if step.why else ''}{_line(step.why)}"]
    # What we do ourselves needs no command.
    if step.state in (State.TOLD, State.FAILED):
        lines += [f"      {command}" for command in step.commands]
    return lines


def _line(text: str) -> str:
    return " ".join(text.split("\n"))


def _document(result: Result) -> dict[str, Any]:
    return {
        "cluster": result.cluster,
        "access": word(result, Part.ACCESS),
        "rights": word(result, Part.RIGHTS),
        "groups_with_hook": result.with_hook,
        "groups_without_hook": result.without_hook,
        "doctor": result.verdict or None,
        "steps": [
            {
                "part": step.part.value,
                "what": step.what,
                "state": step.state.value,
                "why": step.why,
                "commands": [str(command) for command in step.commands],
            }
            for step in result.steps
        ],
    }
