"""When EventBridge hands an event to a target again, and when it gives it up: decided over seconds that nobody waits for.

As AWS documents it ("Event retry policy and using dead-letter queues"), which names no waits: "exponential back off and
jitter". Here each is twice the one before, without jitter, up to one with which the 185 attempts of AWS' defaults take the 24
hours that they may.
"""

from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_WAIT_S = 488
CODES = {403: "NO_PERMISSIONS", 404: "NO_RESOURCE", 429: "THROTTLING"}
"""What a target's answer is called in a dead letter. AWS lists the codes without their meaning; what is not here is an
ERROR_FROM_TARGET."""
NOT_RETRIED = {403, 404}
"""What only somebody's action would change."""


@dataclass(frozen=True)
class RetryPolicy:
    maximum_event_age_s: float = 86400
    maximum_retry_attempts: int = 185


@dataclass(frozen=True)
class Refusal:
    """What a target answers until an event is so old."""

    status: int
    message: str
    until_s: float = float("inf")


@dataclass(frozen=True)
class Delivered:
    age_s: float
    retry_attempts: int


@dataclass(frozen=True)
class GivenUp:
    refusal: Refusal
    retry_attempts: int
    exhausted: str | None
    """Which limit of the policy; none if it was not tried again at all."""

    @property
    def code(self) -> str:
        return CODES.get(self.refusal.status, "ERROR_FROM_TARGET")


def outcome(policy: RetryPolicy, refusals: Sequence[Refusal]) -> Delivered | GivenUp:
    """What becomes of an event whose target refuses in these ways, one after the other."""
    age_s, retries = 0.0, 0
    while refusal := next((one for one in refusals if age_s < one.until_s), None):
        wait_s = min(2**retries, LONGEST_WAIT_S)
        if refusal.status in NOT_RETRIED:
            return GivenUp(refusal, retries, None)
        if retries == policy.maximum_retry_attempts:
            return GivenUp(refusal, retries, "MaximumRetryAttempts")
        if age_s + wait_s > policy.maximum_event_age_s:
            return GivenUp(refusal, retries, "MaximumEventAgeInSeconds")
        age_s, retries = age_s + wait_s, retries + 1
    return Delivered(age_s, retries)
