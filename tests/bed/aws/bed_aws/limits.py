"""What AWS turns away because it is too much: calls that come too fast, events that are too large."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from bed_aws.call import Call
from bed_aws.errors import AwsError


@dataclass(frozen=True)
class Limit:
    """How many calls an account may make at once in a Region, and how many come back each second; and what the rest is told."""

    most: float
    per_second: float
    refusal: tuple[int, str, str]


EC2_REFUSAL = (503, "RequestLimitExceeded", "Request limit exceeded.")
THROTTLED = (429, "ThrottlingException", "Rate exceeded")
SSM_REFUSAL = (400, "ThrottlingException", "Rate exceeded")

# Here each function is an account of its own.
# EC2: "Request throttling for the Amazon EC2 API"; a call without a filter and without pages has a bucket of its own.
# Parameter Store: "Systems Manager endpoints and quotas", default throughput; GetParameter and GetParameters share one.
# EKS publishes none, and is known to answer some ten calls a second.
LIMITS: dict[str, Limit] = {
    "ec2:DescribeInstances": Limit(100, 20, EC2_REFUSAL),
    "ec2:DescribeInstances by ids alone": Limit(50, 10, EC2_REFUSAL),
    "eks:DescribeCluster": Limit(10, 10, THROTTLED),
    "ssm:GetParameters": Limit(40, 40, SSM_REFUSAL),
    "ssm:PutParameter": Limit(3, 3, SSM_REFUSAL),
}
# EventBridge, "Calculating event entry size": of a whole request.
LARGEST = 256 * 1024
TIME_SIZE = 14


class Limits:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # Tokens and the time that they were counted at, by caller and bucket. A bucket is full at first.
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}
        # One part in so many of AWS' quotas, by caller.
        self._parts: dict[str, int] = {}
        self._lock = Lock()

    def divide(self, access_key_id: str, by: int) -> None:
        """Leaves a caller one part in `by` of each quota."""
        self._parts[access_key_id] = by

    def check(self, call: Call) -> None:
        """Raises an AwsError when AWS would."""
        name = bucket_of(call)
        if limit := LIMITS.get(name):
            whose = (call.access_key_id, name)
            part = self._parts.get(call.access_key_id, 1)
            most, per_second = limit.most / part, limit.per_second / part
            with self._lock:
                now = self._now()
                left, at = self._buckets.get(whose, (most, now))
                tokens = min(most, left + (now - at) * per_second)
                self._buckets[whose] = (tokens - (tokens >= 1), now)
            if tokens < 1:
                raise AwsError(*limit.refusal)
        if (call.service, call.action) == ("events", "PutEvents"):
            if sum(map(entry_size, call.asked["Entries"])) >= LARGEST:
                message = "Total size of the entries in the request is over the limit."
                raise AwsError(400, "ValidationException", message)


def bucket_of(call: Call) -> str:
    """The name of the bucket that a call takes a token from."""
    name = f"{call.service}:{call.action}"
    if name == "ec2:DescribeInstances":
        return name if call.asked.keys() & {"Filters", "MaxResults", "NextToken"} else f"{name} by ids alone"
    return "ssm:GetParameters" if name == "ssm:GetParameter" else name


def entry_size(entry: dict[str, Any]) -> int:
    texts = [entry.get(member) or "" for member in ("Source", "DetailType", "Detail")]
    size = sum(len(str(text).encode()) for text in [*texts, *entry.get("Resources", [])])
    return size + (TIME_SIZE if "Time" in entry else 0)
