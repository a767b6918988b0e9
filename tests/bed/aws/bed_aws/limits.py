"""What AWS turns away because it is too much: calls to EC2 and EKS that come too fast, events that are too large."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from bed_aws.call import Call
from bed_aws.errors import AwsError, Protocol



@dataclass(frozen=True)
class Limit:
    """How many calls an account may make at once in a Region, and how many come back each second; and what the rest is told."""

    most: float
    per_second: float
    refusal: tuple[int, str, str, Protocol]


# Here each function is an account of its own. EC2's are those for the actions that describe without a filter of their own
# ("Request throttling for the Amazon EC2 API"); EKS publishes none, and is known to answer some ten calls a second.
LIMITS = {
    ("ec2", "DescribeInstances"): Limit(100, 20, (503, "RequestLimitExceeded", "Request limit exceeded.", "ec2")),
    ("eks", "DescribeCluster"): Limit(10, 10, (429, "ThrottlingException", "Rate exceeded", "json")),
}
# EventBridge, "Calculating event entry size": of a whole request.
LARGEST = 256 * 1024
TIME_SIZE = 14


class Bucket:
    """It is full at first."""

    def __init__(self, limit: Limit, at: float) -> None:
        self._limit = limit
        self.at = at
        self.tokens = limit.most

    def take(self, now: float) -> bool:
        """Whether there was one left."""
        self.tokens, self.at = min(self._limit.most, self.tokens + (now - self.at) * self._limit.per_second), now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Limits:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._own: dict[tuple[str, str, str], Limit] = {}
        self._buckets: dict[tuple[str, str, str], Bucket] = {}
        self._lock = Lock()

    def put(self, access_key_id: str, service: str, action: str, most: float, per_second: float) -> None:
        """Gives this caller another limit than most accounts have."""
        refusal = LIMITS[service, action].refusal
        with self._lock:
            self._own[access_key_id, service, action] = Limit(most, per_second, refusal)
            self._buckets.pop((access_key_id, service, action), None)

    def check(self, call: Call) -> None:
        """Raises an AwsError when AWS would."""
        if usual := LIMITS.get((call.service, call.action)):
            whose = (call.access_key_id, call.service, call.action)
            with self._lock:
                bucket = self._buckets.setdefault(whose, Bucket(self._own.get(whose, usual), self._now()))
                if not bucket.take(self._now()):
                    raise AwsError(*usual.refusal)
        if (call.service, call.action) == ("events", "PutEvents"):
            if sum(map(entry_size, json.loads(call.request.get_data())["Entries"])) >= LARGEST:
                raise AwsError(400, "ValidationException", "Total size of the entries in the request is over the limit.", "json")


def entry_size(entry: dict[str, object]) -> int:
    texts = [entry.get(member) or "" for member in ("Source", "DetailType", "Detail")]
    resources = entry.get("Resources") or []
    assert isinstance(resources, list)
    return sum(len(str(text).encode()) for text in [*texts, *resources]) + (TIME_SIZE if "Time" in entry else 0)
