"""Stand-in for Auto Scaling's lifecycle actions: moto knows hooks only by name and holds no instance for them.

A terminating instance waits, once for each terminate hook of its group, until the hook's action is completed or its
heartbeat timeout runs out. Hooks are put into moto as well, which answers DescribeLifecycleHooks.
"""

import time
import uuid
from dataclasses import dataclass, field
from threading import RLock, Timer
from typing import Any

from werkzeug import Response

from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.instances import Instances
from bed_aws.moto_side import Moto
from bed_aws.notices import Event

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
RESULTS = ("CONTINUE", "ABANDON")
# "48 hours or 100 times the heartbeat timeout, whichever is smaller": no heartbeat helps beyond.
MAX_TIMEOUTS = 100
MAX_WAIT_S = 48 * 3600
TOKEN_LENGTH = 36


@dataclass(frozen=True)
class Hook:
    name: str
    transition: str
    heartbeat_timeout_s: float
    default_result: str
    metadata: str | None = None
    global_timeout_s: float | None = None
    """AWS reckons it and takes none. A test may have less patience."""

    @property
    def max_wait_s(self) -> float:
        return self.global_timeout_s or min(MAX_TIMEOUTS * self.heartbeat_timeout_s, MAX_WAIT_S)


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
        return {
            "hook": self.hook.name,
            "token": self.token,
            "heartbeats": self.heartbeats,
            "result": self.result,
            "ended_by": self.ended_by,
        }

    def event(self) -> Event:
        detail = {
            "LifecycleActionToken": self.token,
            "AutoScalingGroupName": self.group.name,
            "LifecycleHookName": self.hook.name,
            "EC2InstanceId": self.instance_id,
            "LifecycleTransition": self.hook.transition,
            "Origin": "AutoScalingGroup",
            "Destination": "EC2",
        }
        if self.hook.metadata is not None:
            detail["NotificationMetadata"] = self.hook.metadata
        return {
            "detail-type": "EC2 Instance-terminate Lifecycle Action",
            "source": "aws.autoscaling",
            "resources": [self.group.arn],
            "detail": detail,
        }


class AutoScaling:
    def __init__(self, moto: Moto, instances: Instances) -> None:
        self._moto = moto
        self._instances = instances
        self._groups: dict[str, Group] = {}
        self._members: dict[str, Group] = {}
        self._actions: dict[str, list[Action]] = {}
        self._lock = RLock()

    def put_group(self, name: str, hooks: list[Hook], tags: dict[str, str]) -> None:
        arn = f"arn:aws:autoscaling:{self._moto.region}:{self._moto.account}:autoScalingGroup:{uuid.uuid4()}"
        for hook in hooks:
            if hook.default_result not in RESULTS:
                raise BedError(f"default_result is CONTINUE or ABANDON, not {hook.default_result}")
            stored = self._moto.autoscaling.create_lifecycle_hook(
                hook.name, name, hook.transition, int(hook.heartbeat_timeout_s), hook.default_result
            )
            stored.global_timeout = int(hook.max_wait_s)
            stored.notification_metadata = hook.metadata
        self._groups[name] = Group(name, f"{arn}:autoScalingGroupName/{name}", hooks, tags)

    def group(self, name: str) -> Group:
        if name not in self._groups:
            raise BedError(f"no Auto Scaling group {name}", 404)
        return self._groups[name]

    def join(self, instance_id: str, group: Group) -> None:
        self._members[instance_id] = group

    def terminate(self, instance_id: str) -> list[Event]:
        """Takes an instance out of its group; answers the event of each hook that now holds it."""
        self._instances.get(instance_id)
        group = self._members.get(instance_id)
        if group is None:
            raise BedError(f"{instance_id} is in no Auto Scaling group", 409)
        with self._lock:
            if instance_id in self._actions:
                raise BedError(f"{instance_id} is terminating already", 409)
            actions = [Action(group, hook, instance_id) for hook in group.hooks if hook.transition == TERMINATING]
            self._actions[instance_id] = actions
        for action in actions:
            self._watch(action)
        if not actions:
            self._instances.terminate(instance_id)
        return [action.event() for action in actions]

    def described(self, instance_id: str) -> dict[str, Any]:
        """Where an instance is in its life, for EC2 and for Auto Scaling."""
        with self._lock:
            state = self._instances.get(instance_id).state
            actions = self._actions.get(instance_id, [])
            lifecycle_state = None
            if any(action.active for action in actions):
                lifecycle_state = "Terminating:Wait"
            elif instance_id in self._members:
                lifecycle_state = "Terminated" if state == "terminated" else "InService"
            return {
                "state": state,
                "lifecycle_state": lifecycle_state,
                "actions": [action.described() for action in actions],
            }

    def answer(self, call: Call) -> Response | None:
        form = call.request.form
        if call.action == "DescribeLifecycleHooks":
            # moto knows no groups of ours, and would answer an empty list.
            self._known_group(form.get("AutoScalingGroupName", ""))
            return None
        if call.action == "RecordLifecycleActionHeartbeat":
            with self._lock:
                action = self._find(form)
                action.heartbeats += 1
                action.restart_timer()
        elif call.action == "CompleteLifecycleAction":
            result = form.get("LifecycleActionResult", "")
            if result not in RESULTS:
                raise _invalid(f"The lifecycle action result must be CONTINUE or ABANDON, not {result}")
            with self._lock:
                self._finish(self._find(form), result, "call")
        else:
            return None
        name, request_id = call.action, str(uuid.uuid4())
        text = (
            f'<{name}Response xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><{name}Result/>'
            f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{name}Response>"
        )
        return Response(text, headers={"x-amzn-requestid": request_id}, mimetype="text/xml")

    def _known_group(self, name: str) -> None:
        if name not in self._groups:
            raise _invalid(f"AutoScalingGroup name not found - AutoScalingGroup {name} not found")

    def _find(self, form: Any) -> Action:
        """The action that a call means: by its token when it has one, else by its instance."""
        token, instance_id = form.get("LifecycleActionToken"), form.get("InstanceId")
        self._known_group(form.get("AutoScalingGroupName", ""))
        if token is None and instance_id is None:
            raise _invalid("Either a lifecycle action token or an instance ID is required")
        if token is not None and len(token) != TOKEN_LENGTH:
            bound = "greater" if len(token) < TOKEN_LENGTH else "less"
            raise _invalid(
                f"1 validation error detected: Value '{token}' at 'lifecycleActionToken' failed to satisfy constraint: "
                f"Member must have length {bound} than or equal to {TOKEN_LENGTH}"
            )
        for actions in self._actions.values():
            for action in actions:
                hook_meant = (action.group.name, action.hook.name) == (
                    form.get("AutoScalingGroupName"),
                    form.get("LifecycleHookName"),
                )
                meant = action.token == token if token is not None else action.instance_id == instance_id
                if action.active and hook_meant and meant:
                    return action
        by = f"token {token}" if token is not None else f"instance ID {instance_id}"
        raise _invalid(f"No active Lifecycle Action found with {by}")

    def _watch(self, action: Action) -> None:
        timer = Timer(max(0.0, action.expires - time.monotonic()), self._on_timer, [action])
        timer.daemon = True
        timer.start()

    def _on_timer(self, action: Action) -> None:
        with self._lock:
            if not action.active:
                return
            if action.expires <= time.monotonic():
                self._finish(action, action.hook.default_result, "expiry")
                return
        # A heartbeat came meanwhile.
        self._watch(action)

    def _finish(self, action: Action, result: str, by: str) -> None:
        """Ends an action. The last one lets the instance go; ABANDON also ends the others, which get no result."""
        action.result, action.ended_by = result, by
        others = self._actions[action.instance_id]
        if result == "ABANDON":
            for other in filter(lambda other: other.active, others):
                other.ended_by = by
        if not any(other.active for other in others):
            self._instances.terminate(action.instance_id)


def _invalid(message: str) -> AwsError:
    return AwsError(400, "ValidationError", message)
