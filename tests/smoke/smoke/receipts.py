"""Waiting for what the function writes of an instance."""

import json
from collections.abc import Iterator
from typing import Any

from smoke.aws import wait
from smoke.run import Run
from smoke.step import SmokeError


def of_instance(run: Run, instance: str, notice: str, since_ms: int, minutes: int) -> dict[str, Any]:
    """The receipt that is no part of a drain that goes on, for a notice of this kind."""
    pattern = (
        f'{{ $.receipt = * && $.instance = "{instance}" && $.notice.kind = "{notice}" && $.ending != "continued" }}'
    )

    def look() -> dict[str, Any] | None:
        return next(lines(run, run.outputs["LogGroupName"], startTime=since_ms, filterPattern=pattern), None)

    receipt: dict[str, Any] = wait(f"the receipt of {instance}, {notice}", minutes * 60, look, run.pause)
    return receipt


def lines(run: Run, group: str, **query: Any) -> Iterator[dict[str, Any]]:
    """The JSON lines of a log group, the first one first. A page may be empty and not the last."""
    while True:
        page = run.aws.call("logs", "FilterLogEvents", logGroupName=group, **query)
        yield from (json.loads(one["message"]) for one in page["events"])
        if not (token := page.get("nextToken")):
            return
        query["nextToken"] = token


def expect_drained(receipt: dict[str, Any]) -> None:
    if receipt["ending"] != "drained":
        raise SmokeError(f"{receipt['instance']}: {receipt['ending']}, not drained: {receipt.get('reason')}")
