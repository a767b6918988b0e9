"""One message of the failure queue. Pure.

EventBridge and Scheduler put the event itself into the queue, and the error into the message's attributes. Lambda's failure
destination puts event and error into one document.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from cli import printable
from cli.times import parsed

Json = dict[str, Any]
# Periods from the notice to the end of the instance: crates/notice/src/{spot,capacity_reservation,capacity_block}.rs.
NOTICE, BLOCK_ENDS_EARLY = timedelta(minutes=2), timedelta(minutes=30)
# A stopping instance goes at an unknown time. So long after its notice nothing drains: docs/what-happens.md.
LATE = timedelta(minutes=10)
SPOT, STATE_CHANGE = "EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification"
RESERVATIONS = ("EC2 Capacity Reservation Instance Interruption Warning", "EC2 Interruptible Capacity Reservation Instance Interruption Warning")
BLOCK = "Capacity Block Reservation Expiration Warning"
# Kinds in fewer words; any other detail-type stands as it is.
KINDS = {
    SPOT: "spot interruption",
    BLOCK: "capacity block expiry",
    **dict.fromkeys(RESERVATIONS, "capacity interruption"),
    "EC2 Instance Rebalance Recommendation": "rebalance recommendation",
    "EC2 Instance-terminate Lifecycle Action": "terminate hook",
    "EC2 Instance-launch Lifecycle Action": "launch hook",
    "AWS Health Event": "scheduled maintenance",
    "Spillway Doctor": "self-test",
    "CloudFormation Stack Status Change": "self-test after a deployment",
    "spillway-maintenance-lookup": "maintenance lookup",
}


@dataclass(frozen=True)
class Event:
    id: str
    receipt_handle: str
    # None if the message has no event in either form.
    payload: Json | None
    # From Lambda, after the last attempt; else EventBridge or Scheduler could not invoke the function.
    from_lambda: bool
    error: str
    kind: str
    instance: str
    node: str
    # Time of the notice, else of the message.
    time: datetime
    # End of the instance; None where the notice has none.
    deadline: datetime | None

    def why_not(self, now: datetime) -> str | None:
        if self.payload is None:
            return "the message has no event"
        if self.deadline and self.deadline <= now:
            return f"too late: the instance went {age(now - self.deadline)} ago"
        return None


def read(message: Json) -> Event:
    """A message as `aws sqs receive-message` returns it."""
    body = _object(message.get("Body"))
    attributes = {name: one.get("StringValue", "") for name, one in (message.get("MessageAttributes") or {}).items()}
    from_lambda = body is not None and "requestPayload" in body and "requestContext" in body
    if body is not None and from_lambda:
        payload, answer = _dict(body["requestPayload"]), _dict(body.get("responsePayload")) or {}
        condition = (_dict(body["requestContext"]) or {}).get("condition", "")
        error = ": ".join(str(one) for one in (answer.get("errorType") or condition, answer.get("errorMessage")) if one)
    else:
        payload = body if body and ("detail-type" in body or any(name.startswith("spillway-") for name in body)) else None
        error = ": ".join(one for one in (attributes.get("ERROR_CODE"), attributes.get("ERROR_MESSAGE")) if one)
    wrapper, notice = _unwrapped(payload or {})
    detail = _dict(notice.get("detail")) or {}
    sent = (message.get("Attributes") or {}).get("SentTimestamp", "0")
    time = parsed(notice.get("time")) or datetime.fromtimestamp(int(sent) / 1000, timezone.utc)
    node = re.search(r"\bnode ([a-z0-9][a-z0-9.-]+)", error)
    return Event(
        id=str(message.get("MessageId", ""))[:8],
        receipt_handle=str(message.get("ReceiptHandle", "")),
        payload=payload,
        from_lambda=from_lambda,
        error=printable(error),
        kind=_kind(payload or {}, wrapper, notice, detail),
        instance=printable(str(wrapper.get("instance") or detail.get("instance-id") or detail.get("EC2InstanceId") or "")),
        node=node[1] if node else "",
        time=time,
        deadline=_deadline(str(notice.get("detail-type", "")), detail, time),
    )


def age(since: timedelta) -> str:
    minutes = int(since.total_seconds()) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"


def _unwrapped(payload: Json) -> tuple[Json, Json]:
    """The function's own wrapper and the notice in it; an empty wrapper around any other event."""
    wrapper = next((_dict(value) for name, value in payload.items() if name.startswith("spillway-")), None) or {}
    return wrapper, _dict(wrapper.get("notice")) or payload


def _kind(payload: Json, wrapper: Json, notice: Json, detail: Json) -> str:
    own = next((name for name in payload if name.startswith("spillway-")), "")
    kind = str(notice.get("detail-type") or own or "no event")
    words = f"instance is {detail.get('state')}" if kind == STATE_CHANGE else KINDS.get(kind, kind)
    return printable(f"{words}, {own[len('spillway-'):]}" if wrapper else words)


def _deadline(kind: str, detail: Json, time: datetime) -> datetime | None:
    if kind == SPOT:
        return time + NOTICE
    if kind in RESERVATIONS:
        return parsed(detail.get("instance-termination-time")) or time + NOTICE
    if kind == BLOCK:
        end = parsed(detail.get("end-date"))
        return end and end - BLOCK_ENDS_EARLY
    return time + LATE if kind == STATE_CHANGE and detail.get("state") in ("stopping", "shutting-down") else None


def _object(text: Any) -> Json | None:
    try:
        return _dict(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        return None


def _dict(value: Any) -> Json | None:
    return value if isinstance(value, dict) else None
