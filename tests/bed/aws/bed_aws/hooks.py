"""What a lifecycle hook holds up: the moves in an instance's life, and the action of one hook on one instance."""

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from bed_aws.notices import Event

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
EVENTS = {LAUNCHING: "EC2 Instance-launch Lifecycle Action", TERMINATING: "EC2 Instance-terminate Lifecycle Action"}
# "48 hours or 100 times the heartbeat timeout, whichever is smaller": no heartbeat helps beyond.
MAX_TIMEOUTS = 100
MAX_WAIT_S = 48 * 3600
EC2, GROUP, WARM_POOL = "EC2", "AutoScalingGroup", "WarmPool"


@dataclass(frozen=True)
class Move:
    """From where to where an instance goes, and which lifecycle states it has while a hook holds it and after."""

    transition: str
    origin: str
    destination: str
    held: str
    after: str
    action: str | None = None


LAUNCH = Move(LAUNCHING, EC2, GROUP, "Pending:Wait", "InService")
TERMINATION = Move(TERMINATING, GROUP, EC2, "Terminating:Wait", "Terminated")
RETURN_TO_WARM_POOL = Move(TERMINATING, GROUP, WARM_POOL, "Terminating:Wait", "Warmed:Stopped")
ROOT_VOLUME_REPLACEMENT = Move(
    TERMINATING, GROUP, GROUP, "ReplacingRootVolume:Wait", "RootVolumeReplaced", "ReplaceRootVolume"
)
ROOT_VOLUME_REPLACED = Move(LAUNCHING, GROUP, GROUP, "Pending:Wait", "InService", "ReplaceRootVolume")


@dataclass(frozen=True)
class Hook:
    name: str
    transition: str = TERMINATING
    heartbeat_timeout_s: int = 300
    default_result: str = "ABANDON"

    @property
    def max_wait_s(self) -> int:
        return min(MAX_TIMEOUTS * self.heartbeat_timeout_s, MAX_WAIT_S)


@dataclass(frozen=True)
class Group:
    name: str
    arn: str
    hooks: list[Hook]
    tags: dict[str, str]


@dataclass
class Action:
    """One hook's hold on one instance."""

    group: Group
    hook: Hook
    instance_id: str
    move: Move
    token: str = field(default_factory=lambda: str(uuid.uuid4()))
    started: float = field(default_factory=time.monotonic)
    heartbeats: int = 0
    result: str | None = None
    ended_by: str | None = None

    def __post_init__(self) -> None:
        self.restart_timer()

    def restart_timer(self) -> None:
        latest = self.started + self.hook.max_wait_s
        self.expires = min(time.monotonic() + self.hook.heartbeat_timeout_s, latest)

    @property
    def active(self) -> bool:
        return self.ended_by is None

    def described(self) -> dict[str, Any]:
        shown = {key: getattr(self, key) for key in ("token", "heartbeats", "result", "ended_by")}
        return {"hook": self.hook.name, **shown}

    def event(self) -> Event:
        return {
            "detail-type": EVENTS[self.hook.transition],
            "source": "aws.autoscaling",
            "resources": [self.group.arn],
            "detail": {
                "LifecycleActionToken": self.token,
                "AutoScalingGroupName": self.group.name,
                "LifecycleHookName": self.hook.name,
                "EC2InstanceId": self.instance_id,
                "LifecycleTransition": self.hook.transition,
                "Origin": self.move.origin,
                "Destination": self.move.destination,
                **({"Action": self.move.action} if self.move.action else {}),
            },
        }
