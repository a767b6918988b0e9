"""What AWS turns away because it is too much: calls that come too fast, events that are too large."""

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


EC2_REFUSAL = (503, "RequestLimitExceeded", "Request limit exceeded.", "ec2")
THROTTLED = (429, "ThrottlingException", "Rate exceeded", "json")
SSM_REFUSAL = (400, "ThrottlingException", "Rate exceeded", "json")

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
        self._own: dict[tuple[str, str], Limit] = {}
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._lock = Lock()

    def put(self, access_key_id: str, bucket: str, most: float, per_second: float) -> None:
        """Gives this caller another limit than most accounts have."""
        with self._lock:
            self._own[access_key_id, bucket] = Limit(most, per_second, LIMITS[bucket].refusal)
            self._buckets.pop((access_key_id, bucket), None)

    def check(self, call: Call) -> None:
        """Raises an AwsError when AWS would."""
        name = bucket_of(call)
        if usual := LIMITS.get(name):
            whose = (call.access_key_id, name)
            with self._lock:
                bucket = self._buckets.setdefault(whose, Bucket(self._own.get(whose, usual), self._now()))
                if not bucket.take(self._now()):
                    raise AwsError(*usual.refusal)
        if (call.service, call.action) == ("events", "PutEvents"):
            if sum(map(entry_size, json.loads(call.request.get_data())["Entries"])) >= LARGEST:
                raise AwsError(400, "ValidationException", "Total size of the entries in the request is over the limit.", "json")


def bucket_of(call: Call) -> str:
    """The name of the bucket that a call takes a token from."""
    name = f"{call.service}:{call.action}"
    if name == "ec2:DescribeInstances":
        has_filter_or_pages = any(key.startswith("Filter.") or key in ("MaxResults", "NextToken") for key in call.request.values)
        return name if has_filter_or_pages else f"{name} by ids alone"
    return "ssm:GetParameters" if name == "ssm:GetParameter" else name


def entry_size(entry: dict[str, object]) -> int:
    texts = [entry.get(member) or "" for member in ("Source", "DetailType", "Detail")]
    resources = entry.get("Resources") or []
    assert isinstance(resources, list)
    return sum(len(str(text).encode()) for text in [*texts, *resources]) + (TIME_SIZE if "Time" in entry else 0)
