"""The one door to AWS: each call of this program is made by `Aws.call`, so that a test sees and checks them all."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError

from smoke.step import SmokeError


class Aws(Protocol):
    region: str

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """Calls an operation by its name in AWS' model: `call("ec2", "DescribeVpcs")`."""


class Account:
    """A real account, by the credentials of the environment."""

    def __init__(self, region: str, endpoint: str | None = None) -> None:
        self.region = region
        self._endpoint = endpoint
        self._clients: dict[str, Any] = {}

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        if service not in self._clients:
            # Some hundred patterns are tried, more than EventBridge takes in a second.
            config = Config(retries={"mode": "adaptive", "total_max_attempts": 10})
            self._clients[service] = boto3.client(service, self.region, endpoint_url=self._endpoint, config=config)
        answer: dict[str, Any] = getattr(self._clients[service], xform_name(operation))(**parameters)
        return answer


def is_gone(error: ClientError) -> bool:
    """The thing is not there: what a teardown wants to hear."""
    code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
    return any(word in code for word in ("NotFound", "NoSuch", "NonExistent")) or "does not exist" in message


def wait(what: str, seconds: int, look: Callable[[], Any], pause: float) -> Any:
    """Looks until there is something to see, and says what was waited for in vain."""
    deadline = time.monotonic() + seconds
    while True:
        if seen := look():
            return seen
        if time.monotonic() + pause > deadline:
            raise SmokeError(f"{what}: not within {seconds} s")
        time.sleep(pause)
