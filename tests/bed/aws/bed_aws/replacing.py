"""Stand-in for replacements; an account alone shows that a launch does not wait for the hook, and what status FIS gives a request.

An Auto Scaling group terminates an instance by request, keeps its desired capacity, and launches another instance of the same kind
at once. EC2 keeps a spot request for each spot instance.
"""

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from werkzeug import Response

from bed_aws import hooks
from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.instances import Instances, described
from bed_aws.notices import Notices
from bed_aws.pages import Pages

if TYPE_CHECKING:
    from bed_aws.autoscaling import AutoScaling, Life

# Auto Scaling's own, when the caller asks for no number.
ON_A_PAGE = 100
# The causes as the Auto Scaling user guide shows them.
BY_REQUEST = "instance {instance} was taken out of service in response to a user request"
DECREMENTED = ", shrinking the capacity from {before} to {after}"
TO_LAUNCH = "an instance was started in response to a difference between desired and actual capacity"


@dataclass
class GroupState:
    """What a replacement depends on, beside hooks and tags."""

    desired: int = 3
    suspended: list[str] = field(default_factory=list)
    warm_pool: bool = False
    rebalances: bool = False
    contended: int = 0
    """Number of requests that get ResourceContention."""


@dataclass(frozen=True)
class Activity:
    group: str
    cause: str
    began: datetime

    def described(self) -> str:
        return (
            f"<ActivityId>{uuid.uuid4()}</ActivityId><AutoScalingGroupName>{escape(self.group)}</AutoScalingGroupName>"
            f"<Cause>At {_text(self.began)} {escape(self.cause)}.</Cause><StartTime>{_text(self.began)}</StartTime>"
            "<StatusCode>InProgress</StatusCode>"
        )


class Replacing:
    def __init__(self, autoscaling: "AutoScaling", instances: Instances, notices: Notices, pages: Pages) -> None:
        self._autoscaling = autoscaling
        self._instances = instances
        self._notices = notices
        self._pages = pages
        self._states: defaultdict[str, GroupState] = defaultdict(GroupState)
        self._activities: list[Activity] = []
        self._launched: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._statuses: dict[str, tuple[str, datetime]] = {}

    def put(self, name: str, replaced: int = 0, **state: Any) -> None:
        """The state of a group, with so many replacements a minute ago."""
        self._autoscaling.group(name)
        self._states[name] = GroupState(**state)
        for _ in range(replaced):
            self._note(name, BY_REQUEST.format(instance="i-0"), timedelta(minutes=1))

    def mark(self, instance_id: str, status: str, age_s: float = 0) -> None:
        """Gives the spot request of an instance a status."""
        if self._instances.get(instance_id).lifecycle != "spot":
            raise BedError(f"{instance_id} is no spot instance", 409)
        self._statuses[instance_id] = (status, datetime.now(UTC) - timedelta(seconds=age_s))

    def launched(self, name: str) -> dict[str, Any]:
        """The desired capacity of a group, and the instances that it launched in place of others."""
        return {"desired": self._states[name].desired, "launched": self._launched[name]}

    def described(self, name: str) -> str:
        """The part of a group's description that is kept here."""
        state = self._states[name]
        suspended = "".join(
            f"<member><ProcessName>{one}</ProcessName><SuspensionReason>User suspended</SuspensionReason></member>"
            for one in state.suspended
        )
        warm_pool = "<WarmPoolConfiguration><MinSize>0</MinSize></WarmPoolConfiguration>" if state.warm_pool else ""
        return (
            f"<DesiredCapacity>{state.desired}</DesiredCapacity><SuspendedProcesses>{suspended}</SuspendedProcesses>"
            f"<CapacityRebalance>{str(state.rebalances).lower()}</CapacityRebalance>{warm_pool}"
        )

    def activities(self, call: Call) -> str:
        """The activities of a group, the latest first."""
        form = call.request.form
        group = form.get("AutoScalingGroupName")
        latest_first = sorted(self._activities, key=lambda one: one.began, reverse=True)
        told = [f"<member>{one.described()}</member>" for one in latest_first if one.group == group]
        start = int(form.get("NextToken", "0"))
        end = start + self._pages.size(call.access_key_id, int(form.get("MaxRecords", ON_A_PAGE)))
        more = f"<NextToken>{end}</NextToken>" if end < len(told) else ""
        return f"<Activities>{''.join(told[start:end])}</Activities>{more}"

    def terminate(self, call: Call) -> str:
        """Terminates an instance past the hooks of its group, and launches another unless the capacity is decremented."""
        instance_id, decrement = call.request.form["InstanceId"], call.request.form["ShouldDecrementDesiredCapacity"] == "true"
        life = self._autoscaling.life_of(instance_id)
        if life is None or life.state == "Terminated":
            message = f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
            raise AwsError(400, "ValidationError", message)
        state = self._states[life.group.name]
        if state.contended:
            state.contended -= 1
            raise AwsError(500, "ResourceContention", "You already have a pending update to an Amazon EC2 Auto Scaling resource.")
        if life.state.startswith("Warmed:"):
            raise AwsError(400, "ValidationError", f"The instance {instance_id} is in a warm pool and cannot be terminated by this call.")
        cause = BY_REQUEST.format(instance=instance_id)
        if decrement:
            cause += DECREMENTED.format(before=state.desired, after=state.desired - 1)
            state.desired -= 1
        activity = self._note(life.group.name, cause)
        if life.state == "InService":
            self._notices.keep(instance_id, self._autoscaling.leave(instance_id, hooks.TERMINATION))
            if not decrement and "Launch" not in state.suspended:
                self._launch(instance_id, life)
        return f"<Activity>{activity.described()}</Activity>"

    def spot_requests(self, call: Call) -> Response | None:
        """EC2's answer to DescribeSpotInstanceRequests; None to any other call."""
        if call.action != "DescribeSpotInstanceRequests":
            return None
        wanted = [value for key, value in call.request.form.items() if key.startswith("SpotInstanceRequestId.")]
        told = []
        for request in wanted:
            instance_id = request.replace("sir-", "i-")
            status, updated = self._statuses.get(instance_id, ("fulfilled", datetime.now(UTC) - timedelta(hours=1)))
            told.append(
                f"<item><spotInstanceRequestId>{request}</spotInstanceRequestId><state>active</state><status><code>{status}</code>"
                f"<updateTime>{_text(updated)}</updateTime></status><instanceId>{instance_id}</instanceId></item>"
            )
        text = (
            '<DescribeSpotInstanceRequestsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            f"<requestId>{uuid.uuid4()}</requestId><spotInstanceRequestSet>{''.join(told)}</spotInstanceRequestSet>"
            "</DescribeSpotInstanceRequestsResponse>"
        )
        return Response(text, mimetype="text/xml")

    def _launch(self, instance_id: str, life: "Life") -> None:
        """An instance of the same kind in the same zone, past the launch hooks of the group."""
        before = self._instances.get(instance_id)
        tags = {tag["key"]: tag["value"] for tag in before.get_tags()}
        instance = self._instances.launch(before.availability_zone, before.lifecycle == "spot", None, tags, "ip")
        self._note(life.group.name, TO_LAUNCH)
        delivered = self._autoscaling.launch(instance.id, life.group, False)
        self._launched[life.group.name].append({**described(instance), "delivered": delivered})

    def _note(self, group: str, cause: str, ago: timedelta = timedelta()) -> Activity:
        self._activities.append(Activity(group, cause, datetime.now(UTC) - ago))
        return self._activities[-1]


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
