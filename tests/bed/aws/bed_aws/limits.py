"""What AWS turns away because it is too much: calls to EC2 that come too fast, events that are too large."""

import json
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from bed_aws.call import Call
from bed_aws.errors import AwsError

# EC2's bucket for the actions that describe without a filter of their own ("Request throttling for the Amazon EC2 API"):
# an account has one in each Region. Here each function is an account of its own.
MOST, PER_SECOND = 100, 20
# EventBridge, "Calculating event entry size": of a whole request.
LARGEST = 256 * 1024
TIME_SIZE = 14


@dataclass
class Bucket:
    at: float
    tokens: float = MOST

    def take(self, now: float) -> bool:
        """Whether there was one left."""
        self.tokens, self.at = min(MOST, self.tokens + (now - self.at) * PER_SECOND), now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Limits:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._buckets: dict[str, Bucket] = defaultdict(lambda: Bucket(at=now()))
        self._lock = Lock()

    def check(self, call: Call) -> None:
        """Raises an AwsError when AWS would."""
        if (call.service, call.action) == ("ec2", "DescribeInstances"):
            with self._lock:
                if not self._buckets[call.access_key_id].take(self._now()):
                    raise AwsError(503, "RequestLimitExceeded", "Request limit exceeded.")
        if (call.service, call.action) == ("events", "PutEvents"):
            if sum(map(entry_size, json.loads(call.request.get_data())["Entries"])) >= LARGEST:
                raise AwsError(400, "ValidationException", "Total size of the entries in the request is over the limit.", "json")


def entry_size(entry: dict[str, object]) -> int:
    texts = [entry.get(member) or "" for member in ("Source", "DetailType", "Detail")]
    resources = entry.get("Resources") or []
    assert isinstance(resources, list)
    return sum(len(str(text).encode()) for text in [*texts, *resources]) + (TIME_SIZE if "Time" in entry else 0)
