"""Stand-in for replacements; an account alone shows that a launch does not wait for the hook, and what status FIS gives a request.

An Auto Scaling group terminates an instance by request, keeps its desired capacity, and launches another instance of the same kind
at once. EC2 keeps a spot request for each spot instance.
"""

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.instances import Instances, described
from bed_aws.notices import Notices

if TYPE_CHECKING:
    from bed_aws.autoscaling import AutoScaling, Life

# The causes as the Auto Scaling user guide shows them.
BY_REQUEST = "instance {instance} was taken out of service in response to a user request"
DECREMENTED = ", shrinking the capacity from {before} to {after}"
TO_LAUNCH = "an instance was started in response to a difference between desired and actual capacity"
Json = dict[str, Any]


@dataclass
class GroupState:
    """What a replacement depends on, beside hooks and tags."""

    suspended: list[str] = field(default_factory=list)
    warm_pool: bool = False
    rebalances: bool = False
    desired: int = 3
    contended: int = 0
    """Number of requests that get ResourceContention."""


class Replacing:
    def __init__(self, autoscaling: "AutoScaling", instances: Instances, notices: Notices) -> None:
        self._autoscaling = autoscaling
        self._instances = instances
        self._notices = notices
        self._states: defaultdict[str, GroupState] = defaultdict(GroupState)
        self._activities: defaultdict[str, list[Json]] = defaultdict(list)
        self._launched: defaultdict[str, list[Json]] = defaultdict(list)
        self._statuses: dict[str, tuple[str, datetime]] = {}

    def put(self, name: str, replaced: int = 0, **state: Any) -> None:
        """The state of a group, with so many replacements a minute ago."""
        self._states[name] = GroupState(**state)
        for _ in range(replaced):
            self._note(name, BY_REQUEST.format(instance="i-0"), timedelta(minutes=1))

    def mark(self, instance_id: str, status: str, age_s: float = 0) -> None:
        """Gives the spot request of an instance a status."""
        if self._instances.get(instance_id).lifecycle != "spot":
            raise BedError(f"{instance_id} is no spot instance: AWS interrupts no other", 409)
        self._statuses[instance_id] = (status, datetime.now(UTC) - timedelta(seconds=age_s))

    def launched(self, name: str) -> Json:
        """The desired capacity of a group, and the instances that it launched in place of others."""
        return {"desired": self._states[name].desired, "launched": self._launched[name]}

    def described(self, name: str) -> Json:
        """The part of a group's description that is kept here."""
        state = self._states[name]
        return {
            "DesiredCapacity": state.desired,
            "SuspendedProcesses": [{"ProcessName": one} for one in state.suspended],
            "CapacityRebalance": state.rebalances,
            **({"WarmPoolConfiguration": {"MinSize": 0}} if state.warm_pool else {}),
        }

    def activities(self, group: str) -> list[Json]:
        """The activities of a group, the latest first."""
        return sorted(self._activities[group], key=lambda one: one["StartTime"], reverse=True)

    def terminate(self, asked: Json) -> Json:
        """Terminates an instance past the hooks of its group, and launches another unless the capacity is decremented."""
        instance_id, decrement = asked["InstanceId"], asked["ShouldDecrementDesiredCapacity"]
        life = self._autoscaling.life_of(instance_id)
        if life is None or life.state == "Terminated":
            message = f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
            raise AwsError(400, "ValidationError", message)
        if life.state.startswith("Warmed:"):
            message = f"The instance {instance_id} is in a warm pool and cannot be terminated by this call."
            raise AwsError(400, "ValidationError", message)
        state, cause = self._states[life.group.name], BY_REQUEST.format(instance=instance_id)
        if state.contended:
            state.contended -= 1
            raise AwsError(500, "ResourceContention", "You already have a pending update to an Amazon EC2 Auto Scaling resource.")
        if decrement:
            cause += DECREMENTED.format(before=state.desired, after=state.desired - 1)
            state.desired -= 1
        activity = self._note(life.group.name, cause)
        if life.state == "InService":
            self._notices.keep(instance_id, self._autoscaling.leave(instance_id, "terminate"))
            if not decrement and "Launch" not in state.suspended:
                self._launch(instance_id, life)
        return {"Activity": activity}

    def spot_requests(self, call: Call) -> Json | None:
        """EC2's answer to DescribeSpotInstanceRequests; None to any other call."""
        if call.action != "DescribeSpotInstanceRequests":
            return None
        shown, an_hour_ago = [], datetime.now(UTC) - timedelta(hours=1)
        for request in call.asked.get("SpotInstanceRequestIds", []):
            instance_id = request.replace("sir-", "i-")
            status, updated = self._statuses.get(instance_id, ("fulfilled", an_hour_ago))
            of = {"SpotInstanceRequestId": request, "State": "active", "InstanceId": instance_id}
            shown.append({**of, "Status": {"Code": status, "UpdateTime": updated}})
        return {"SpotInstanceRequests": shown}

    def _launch(self, instance_id: str, life: "Life") -> None:
        """An instance of the same kind in the same zone, past the launch hooks of the group."""
        before = self._instances.get(instance_id)
        tags = {tag["key"]: tag["value"] for tag in before.get_tags()}
        instance = self._instances.launch(before.availability_zone, before.lifecycle == "spot", tags)
        self._note(life.group.name, TO_LAUNCH)
        delivered = self._autoscaling.launch(instance.id, life.group)
        self._launched[life.group.name].append({**described(instance), "delivered": delivered})

    def _note(self, group: str, cause: str, ago: timedelta = timedelta()) -> Json:
        began = datetime.now(UTC).replace(microsecond=0) - ago
        activity = {
            "ActivityId": str(uuid.uuid4()),
            "AutoScalingGroupName": group,
            "Cause": f"At {began:%Y-%m-%dT%H:%M:%SZ} {cause}.",
            "StartTime": began,
            "StatusCode": "InProgress",
        }
        self._activities[group].append(activity)
        return activity
