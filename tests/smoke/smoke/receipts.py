"""Waiting for what the function writes of an instance."""

import json
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
        found = run.aws.call(
            "logs",
            "FilterLogEvents",
            logGroupName=run.outputs["LogGroupName"],
            startTime=since_ms,
            filterPattern=pattern,
        )["events"]
        return json.loads(found[0]["message"]) if found else None

    receipt: dict[str, Any] = wait(f"the receipt of {instance}, {notice}", minutes * 60, look, run.pause)
    return receipt


def expect_drained(receipt: dict[str, Any]) -> None:
    if receipt["ending"] != "drained":
        raise SmokeError(f"{receipt['instance']}: {receipt['ending']}, not drained: {receipt.get('reason')}")
