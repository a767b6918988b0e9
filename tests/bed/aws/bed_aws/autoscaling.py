"""Stand-in for Auto Scaling's lifecycle actions, its groups and their tags: moto knows hooks only by name and holds no
instance for them, and answers no page but one.

An instance that moves waits, once for each hook of its group that looks at such a move, until the hook's action is
completed or its heartbeat timeout runs out. Hooks are put into moto as well, which answers DescribeLifecycleHooks.
"""

import time
import uuid
from dataclasses import dataclass, field
from itertools import count
from threading import RLock, Timer
from typing import Any
from xml.sax.saxutils import escape

from werkzeug import Response

from bed_aws import hooks
from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.hooks import Action, Group, Hook, Move
from bed_aws.instances import Instances
from bed_aws.moto_side import Moto
from bed_aws.notices import Notices
from bed_aws.pages import Pages
from bed_aws.replacing import Replacing

RESULTS = ("CONTINUE", "ABANDON")
TOKEN_LENGTH = 36
# DescribeTags' and DescribeAutoScalingGroups' own, when the caller asks for no number.
ON_A_PAGE = 50
TAG_FILTERS = ("auto-scaling-group", "key", "value")

Deliveries = list[dict[str, Any]]


@dataclass
class Life:
    """A group's instance: where it is, and the actions that hold or held it, the latest last."""

    group: Group
    state: str = "InService"
    actions: list[Action] = field(default_factory=list)


class AutoScaling:
    def __init__(self, moto: Moto, instances: Instances, notices: Notices, pages: Pages) -> None:
        self._moto = moto
        self._instances = instances
        self._notices = notices
        self._pages = pages
        self._groups: dict[str, Group] = {}
        self._lives: dict[str, Life] = {}
        self._lock = RLock()
        self.replacing = Replacing(self, instances, notices, pages)

    def put_group(self, name: str, hooks: list[Hook], tags: dict[str, str], keeps_abandoned: bool = False) -> None:
        arn = f"arn:aws:autoscaling:{self._moto.region}:{self._moto.account}:autoScalingGroup:{uuid.uuid4()}"
        for hook in hooks:
            if hook.default_result not in RESULTS:
                raise BedError(f"default_result is CONTINUE or ABANDON, not {hook.default_result}")
        with self._lock:
            self._groups[name] = Group(name, f"{arn}:autoScalingGroupName/{name}", hooks, tags, keeps_abandoned)
        self._store(self._groups[name])

    def _store(self, group: Group) -> None:
        """Its hooks, in moto."""
        for former in self._moto.autoscaling.describe_lifecycle_hooks(group.name):
            self._moto.autoscaling.delete_lifecycle_hook(group.name, former.name)
        for hook in group.hooks:
            stored = self._moto.autoscaling.create_lifecycle_hook(
                hook.name, group.name, hook.transition, int(hook.heartbeat_timeout_s), hook.default_result
            )
            stored.global_timeout = int(hook.max_wait_s)
            stored.notification_metadata = hook.metadata
            stored.notification_target_arn = hook.notifies

    def group(self, name: str) -> Group:
        if name not in self._groups:
            raise BedError(f"no Auto Scaling group {name}", 404)
        return self._groups[name]

    def tags_of(self, name: str) -> dict[str, str]:
        """None of a group that does not exist: such a one has no ARN either, and whoever may call at all is told."""
        if life := self._lives.get(name):
            return life.group.tags
        return self._groups[name].tags if name in self._groups else {}

    def life_of(self, instance_id: str) -> Life | None:
        return self._lives.get(instance_id)

    def launch(self, instance_id: str, group: Group, into_warm_pool: bool) -> Deliveries:
        """Takes an instance into its group, past the launch hooks."""
        with self._lock:
            self._lives[instance_id] = Life(group, "Pending")
            return self._begin(instance_id, hooks.LAUNCH_INTO_WARM_POOL if into_warm_pool else hooks.LAUNCH)

    def launch_from_warm_pool(self, instance_id: str) -> Deliveries:
        life = self._life(instance_id, "Warmed:Stopped", "Warmed:Running")
        stopped, life.state = life.state == "Warmed:Stopped", "Pending"
        started = self._instances.go_through(instance_id, "pending", "running") if stopped else []
        return started + self._begin(instance_id, hooks.LAUNCH_FROM_WARM_POOL)

    def leave(self, instance_id: str, move: Move) -> Deliveries:
        """Takes an instance out of service, past the terminate hooks."""
        with self._lock:
            self._life(instance_id, "InService")
            return self._begin(instance_id, move)

    def described(self, instance_id: str) -> dict[str, Any]:
        """Where an instance is in its life, for EC2 and for Auto Scaling."""
        with self._lock:
            state = self._instances.get(instance_id).state
            life = self._lives.get(instance_id)
            if life is None:
                return {"state": state, "lifecycle_state": None, "actions": []}
            return {
                "state": state,
                "lifecycle_state": "Terminated" if state == "terminated" else life.state,
                "actions": [action.described() for action in life.actions],
            }

    def answer(self, call: Call) -> Response | None:
        form = call.request.form
        if call.action == "DescribeLifecycleHooks":
            # moto knows no groups of ours, and would answer an empty list.
            self._known_group(form.get("AutoScalingGroupName", ""))
            return None
        if call.action == "DescribeTags":
            return _answer(call.action, self._tags(call))
        if call.action == "DescribeAutoScalingGroups":
            return _answer(call.action, self._described_groups(call))
        if call.action == "DescribeScalingActivities":
            return _answer(call.action, self.replacing.activities(call))
        if call.action == "TerminateInstanceInAutoScalingGroup":
            with self._lock:
                return _answer(call.action, self.replacing.terminate(call))
        if call.action == "DescribeAutoScalingInstances":
            return _answer(call.action, self._described_instances(call))
        if call.action in ("PutLifecycleHook", "DeleteLifecycleHook"):
            self._change_hook(call)
        elif call.action in ("CreateOrUpdateTags", "DeleteTags"):
            self._change_tags(call)
        elif call.action == "RecordLifecycleActionHeartbeat":
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
        return _answer(call.action)

    def described_group(self, name: str) -> dict[str, Any]:
        group = self.group(name)
        return {"hooks": [vars(hook) for hook in group.hooks], "tags": group.tags}

    def _change_hook(self, call: Call) -> None:
        form = call.request.form
        group, name = form.get("AutoScalingGroupName", ""), form.get("LifecycleHookName", "")
        self._known_group(group)
        before = {hook.name: hook for hook in self._groups[group].hooks}
        if call.action == "DeleteLifecycleHook":
            if name not in before:
                raise _invalid(f"No Lifecycle Hook found with name {name}")
            del before[name]
            # Whoever waits in it goes on.
            for action in [one for life in self._lives.values() for one in life.actions if one.active]:
                if (action.group.name, action.hook.name) == (group, name):
                    with self._lock:
                        self._finish(action, "CONTINUE", "deletion")
        else:
            seconds = float(form.get("HeartbeatTimeout", 3600))
            before[name] = Hook(name, form.get("LifecycleTransition", ""), seconds, form.get("DefaultResult", "ABANDON"))
        # Instances that are here have the group itself.
        self._groups[group].hooks[:] = before.values()
        self._store(self._groups[group])

    def _change_tags(self, call: Call) -> None:
        form = call.request.form
        for number in count(1):
            of = f"Tags.member.{number}."
            if (name := form.get(of + "ResourceId")) is None:
                return
            self._known_group(name)
            if call.action == "CreateOrUpdateTags":
                self._groups[name].tags[form[of + "Key"]] = form.get(of + "Value", "")
            else:
                self._groups[name].tags.pop(form[of + "Key"], None)

    def _described_instances(self, call: Call) -> str:
        wanted = [value for key, value in call.request.form.items() if key.startswith("InstanceIds.member.")]
        with self._lock:
            told = "".join(
                f"<member><InstanceId>{one}</InstanceId><AutoScalingGroupName>{escape(life.group.name)}</AutoScalingGroupName>"
                f"<AvailabilityZone>us-east-1a</AvailabilityZone><LifecycleState>{life.state}</LifecycleState>"
                "<HealthStatus>HEALTHY</HealthStatus><ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>"
                for one, life in self._lives.items()
                if one in wanted and life.state != "Terminated"
            )
        return f"<AutoScalingInstances>{told}</AutoScalingInstances>"

    def _life(self, instance_id: str, *wanted: str) -> Life:
        """The life of an instance that can move now."""
        self._instances.get(instance_id)
        life = self._lives.get(instance_id)
        if life is None:
            raise BedError(f"{instance_id} is in no Auto Scaling group", 409)
        if life.state not in wanted:
            raise BedError(f"{instance_id} is {life.state}, not {' or '.join(wanted)}", 409)
        return life

    def _begin(self, instance_id: str, move: Move) -> Deliveries:
        """Holds an instance for each hook that looks at such a move; answers what came of their events."""
        with self._lock:
            life = self._lives[instance_id]
            looking = [hook for hook in life.group.hooks if hook.transition == move.transition]
            actions = [Action(life.group, hook, instance_id, move) for hook in looking]
            life.actions += actions
            if actions:
                life.state = move.held
            else:
                self._end(instance_id, move, "CONTINUE")
        for action in actions:
            self._watch(action)
        return [delivery for action in actions for delivery in self._notices.put(action.event())]

    def _end(self, instance_id: str, move: Move, result: str) -> None:
        """No hook holds the instance any longer: it gets where it was going."""
        life = self._lives[instance_id]
        life.state = move.after
        if self._instances.get(instance_id).state == "terminated":
            # No hook holds a spot instance that is reclaimed.
            return
        if move is hooks.TERMINATION and result == "ABANDON" and life.group.keeps_abandoned:
            life.state = "Terminating:Retained"
        elif move is hooks.TERMINATION or (move.transition == hooks.LAUNCHING and result == "ABANDON"):
            life.state = "Terminated"
            self._instances.terminate(instance_id)
        elif move.after == "Warmed:Stopped":
            self._notices.keep(instance_id, self._instances.go_through(instance_id, "stopping", "stopped"))
        elif move is hooks.ROOT_VOLUME_REPLACEMENT:
            self._instances.reboot(instance_id)
            self._notices.keep(instance_id, self._begin(instance_id, hooks.ROOT_VOLUME_REPLACED))

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
        for life in self._lives.values():
            for action in life.actions:
                hook_meant = (action.group.name, action.hook.name) == (
                    form.get("AutoScalingGroupName"),
                    form.get("LifecycleHookName"),
                )
                meant = action.token == token if token is not None else action.instance_id == instance_id
                if action.active and hook_meant and meant:
                    return action
        target = f"token {token}" if token is not None else f"instance ID {instance_id}"
        raise _invalid(f"No active Lifecycle Action found with {target}")

    def _tags(self, call: Call) -> str:
        form = call.request.form
        with self._lock:
            tags = [(group.name, key, value) for group in self._groups.values() for key, value in group.tags.items()]
        for number in count(1):
            name = form.get(f"Filters.member.{number}.Name")
            if name is None:
                break
            if name not in TAG_FILTERS:
                raise _invalid(f"Filter type {name} is not correct. Allowed Filter types are: {', '.join(TAG_FILTERS)}")
            values = [value for key, value in form.items() if key.startswith(f"Filters.member.{number}.Values.member.")]
            tags = [tag for tag in tags if tag[TAG_FILTERS.index(name)] in values]
        described = [
            f"<member>{_tag(group, key, value)}<PropagateAtLaunch>false</PropagateAtLaunch></member>"
            for group, key, value in tags
        ]
        return self._page(call, "Tags", described)

    def _described_groups(self, call: Call) -> str:
        """All groups, or those that are named; the stand-in knows no other filter."""
        form = call.request.form
        names = {value for key, value in form.items() if key.startswith("AutoScalingGroupNames.member.")}
        with_instances = form.get("IncludeInstances", "true") == "true"
        with self._lock:
            groups = [group for group in self._groups.values() if not names or group.name in names]
            described = [self._described_group(group, with_instances) for group in groups]
        return self._page(call, "AutoScalingGroups", described)

    def _described_group(self, group: Group, with_instances: bool) -> str:
        instances = "".join(
            f"<member><InstanceId>{instance_id}</InstanceId><AvailabilityZone>us-east-1a</AvailabilityZone>"
            f"<LifecycleState>{life.state}</LifecycleState><HealthStatus>Healthy</HealthStatus>"
            "<ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>"
            for instance_id, life in self._lives.items()
            if with_instances and life.group is group and life.state != "Terminated"
        )
        tags = "".join(
            f"<member>{_tag(group.name, key, value)}<PropagateAtLaunch>true</PropagateAtLaunch></member>"
            for key, value in group.tags.items()
        )
        retain = "<RetentionTriggers><TerminateHookAbandon>retain</TerminateHookAbandon></RetentionTriggers>"
        policy = f"<InstanceLifecyclePolicy>{retain}</InstanceLifecyclePolicy>" if group.keeps_abandoned else ""
        return (
            f"<member><AutoScalingGroupName>{escape(group.name)}</AutoScalingGroupName>"
            f"<AutoScalingGroupARN>{escape(group.arn)}</AutoScalingGroupARN><MinSize>0</MinSize><MaxSize>9</MaxSize>"
            f"{self.replacing.described(group.name)}<DefaultCooldown>300</DefaultCooldown>"
            "<AvailabilityZones><member>us-east-1a</member></AvailabilityZones><HealthCheckType>EC2</HealthCheckType>"
            f"<CreatedTime>2026-11-21T00:00:00Z</CreatedTime><Instances>{instances}</Instances><Tags>{tags}</Tags>"
            f"{policy}</member>"
        )

    def _page(self, call: Call, what: str, members: list[str]) -> str:
        form = call.request.form
        start = int(form.get("NextToken", "0"))
        end = start + self._pages.size(call.access_key_id, int(form.get("MaxRecords", ON_A_PAGE)))
        more = f"<NextToken>{end}</NextToken>" if end < len(members) else ""
        return f"<{what}>{''.join(members[start:end])}</{what}>{more}"

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
        """Ends an action. The last one lets the instance go on; ABANDON also ends the others, which get no result."""
        action.result, action.ended_by = result, by
        others = [other for other in self._lives[action.instance_id].actions if other.active]
        if result == "ABANDON":
            for other in others:
                other.ended_by = by
        if result == "ABANDON" or not others:
            self._end(action.instance_id, action.move, result)


def _tag(group: str, key: str, value: str) -> str:
    return (
        f"<ResourceId>{escape(group)}</ResourceId><ResourceType>auto-scaling-group</ResourceType>"
        f"<Key>{escape(key)}</Key><Value>{escape(value)}</Value>"
    )


def _answer(action: str, result: str = "") -> Response:
    request_id = str(uuid.uuid4())
    text = (
        f'<{action}Response xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><{action}Result>{result}'
        f"</{action}Result><ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action}Response>"
    )
    return Response(text, headers={"x-amzn-requestid": request_id}, mimetype="text/xml")


def _invalid(message: str) -> AwsError:
    return AwsError(400, "ValidationError", message)
