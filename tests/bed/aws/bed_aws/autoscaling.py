"""Stand-in for Auto Scaling's lifecycle actions, its groups and their tags: moto knows hooks only by name and holds no
instance for them, and answers no page but one.

An instance that moves waits, once for each hook of its group that looks at such a move, until the hook's action is
completed or its heartbeat timeout runs out.
"""

import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import RLock, Timer
from typing import Any

from bed_aws import hooks
from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.hooks import Action, Group, Hook, Move
from bed_aws.instances import Instances
from bed_aws.moto_side import Moto
from bed_aws.notices import Deliveries, Notices
from bed_aws.replacing import Replacing

# Auto Scaling's own, when the caller asks for no number.
ON_A_PAGE = 50
ACTIVITIES_ON_A_PAGE = 100
TAG_FILTERS = ("auto-scaling-group", "key", "value")
LEAVING = {
    "terminate": hooks.TERMINATION,
    "return to warm pool": hooks.RETURN_TO_WARM_POOL,
    "replace root volume": hooks.ROOT_VOLUME_REPLACEMENT,
}
Json = dict[str, Any]


@dataclass
class Life:
    """A group's instance: where it is, and the actions that hold or held it, the latest last."""

    group: Group
    state: str = "Pending"
    actions: list[Action] = field(default_factory=list)


class AutoScaling:
    def __init__(self, moto: Moto, instances: Instances, notices: Notices) -> None:
        self._moto = moto
        self._instances = instances
        self._notices = notices
        self._groups: dict[str, Group] = {}
        self._lives: dict[str, Life] = {}
        self._lock = RLock()
        self.replacing = Replacing(self, instances, notices)
        self._answers = {
            "CompleteLifecycleAction": self._complete,
            "CreateOrUpdateTags": self._change_tags,
            "DeleteLifecycleHook": self._delete_hook,
            "DeleteTags": self._delete_tags,
            "DescribeAutoScalingGroups": self._describe_groups,
            "DescribeAutoScalingInstances": self._describe_instances,
            "DescribeLifecycleHooks": self._describe_hooks,
            "DescribeScalingActivities": self._describe_activities,
            "DescribeTags": self._describe_tags,
            "PutLifecycleHook": self._put_hook,
            "RecordLifecycleActionHeartbeat": self._heartbeat,
            "TerminateInstanceInAutoScalingGroup": self.replacing.terminate,
        }

    def answer(self, call: Call) -> Json | None:
        if call.action not in self._answers:
            return None
        with self._lock:
            return self._answers[call.action](call.asked)

    def put_group(self, name: str, hooks: list[Json], tags: dict[str, str] | None = None) -> None:
        arn = self._moto.arn("autoscaling", f"autoScalingGroup:{uuid.uuid4()}:autoScalingGroupName/{name}")
        with self._lock:
            self._groups[name] = Group(name, arn, [Hook(**hook) for hook in hooks], tags or {})

    def group(self, name: str) -> Group:
        if name not in self._groups:
            raise BedError(f"no Auto Scaling group {name}", 404)
        return self._groups[name]

    def described_group(self, name: str) -> Json:
        """Hooks and tags, for the bed."""
        group = self.group(name)
        return {"hooks": [vars(hook) for hook in group.hooks], "tags": group.tags}

    def tags_of(self, name: str) -> dict[str, str]:
        """None of a group that does not exist: such a one has no ARN either, and whoever may call at all is told."""
        if life := self._lives.get(name):
            return life.group.tags
        return self._groups[name].tags if name in self._groups else {}

    def life_of(self, instance_id: str) -> Life | None:
        return self._lives.get(instance_id)

    def launch(self, instance_id: str, group: Group) -> Deliveries:
        """Takes an instance into its group, past the launch hooks."""
        with self._lock:
            self._lives[instance_id] = Life(group)
            return self._begin(instance_id, hooks.LAUNCH)

    def leave(self, instance_id: str, how: str) -> Deliveries:
        """Takes an instance out of service, past the terminate hooks."""
        with self._lock:
            life = self._lives.get(instance_id)
            if life is None or life.state != "InService":
                raise BedError(f"{instance_id} is {life.state if life else 'in no group'}, not InService", 409)
            return self._begin(instance_id, LEAVING[how])

    def described(self, instance_id: str) -> Json:
        """Where an instance is in its life, for EC2 and for Auto Scaling."""
        with self._lock:
            state = self._instances.get(instance_id).state
            life = self._lives.get(instance_id)
            if life is None:
                return {"state": state, "lifecycle_state": None, "actions": []}
            actions = [action.described() for action in life.actions]
            lifecycle_state = "Terminated" if state == "terminated" else life.state
            return {"state": state, "lifecycle_state": lifecycle_state, "actions": actions}

    def _complete(self, asked: Json) -> Json:
        if (result := asked["LifecycleActionResult"]) not in ("CONTINUE", "ABANDON"):
            raise _invalid(f"The lifecycle action result must be CONTINUE or ABANDON, not {result}")
        self._finish(self._find(asked), result, "call")
        return {}

    def _heartbeat(self, asked: Json) -> Json:
        action = self._find(asked)
        action.heartbeats += 1
        action.restart_timer()
        return {}

    def _describe_hooks(self, asked: Json) -> Json:
        group, names = self._known_group(asked), asked.get("LifecycleHookNames")
        described = [
            {
                "LifecycleHookName": hook.name,
                "AutoScalingGroupName": group.name,
                "LifecycleTransition": hook.transition,
                "HeartbeatTimeout": hook.heartbeat_timeout_s,
                "GlobalTimeout": hook.max_wait_s,
                "DefaultResult": hook.default_result,
            }
            for hook in group.hooks
            if not names or hook.name in names
        ]
        return {"LifecycleHooks": described}

    def _put_hook(self, asked: Json) -> Json:
        group, name = self._known_group(asked), asked["LifecycleHookName"]
        seconds, result = asked.get("HeartbeatTimeout", 3600), asked.get("DefaultResult", "ABANDON")
        others = [hook for hook in group.hooks if hook.name != name]
        # Instances that are here have the group itself.
        group.hooks[:] = [*others, Hook(name, asked["LifecycleTransition"], seconds, result)]
        return {}

    def _delete_hook(self, asked: Json) -> Json:
        group, name = self._known_group(asked), asked["LifecycleHookName"]
        if name not in [hook.name for hook in group.hooks]:
            raise _invalid(f"No Lifecycle Hook found with name {name}")
        group.hooks[:] = [hook for hook in group.hooks if hook.name != name]
        # Whoever waits in it goes on.
        for action in [one for life in self._lives.values() for one in life.actions if one.active]:
            if (action.group.name, action.hook.name) == (group.name, name):
                self._finish(action, "CONTINUE", "deletion")
        return {}

    def _change_tags(self, asked: Json) -> Json:
        for tag in asked["Tags"]:
            self._known_group(tag, "ResourceId").tags[tag["Key"]] = tag.get("Value", "")
        return {}

    def _delete_tags(self, asked: Json) -> Json:
        for tag in asked["Tags"]:
            self._known_group(tag, "ResourceId").tags.pop(tag["Key"], None)
        return {}

    def _describe_tags(self, asked: Json) -> Json:
        tags = [tag for group in self._groups.values() for tag in _tags(group, False)]
        for one in asked.get("Filters", []):
            if one["Name"] not in TAG_FILTERS:
                allowed = ", ".join(TAG_FILTERS)
                raise _invalid(f"Filter type {one['Name']} is not correct. Allowed Filter types are: {allowed}")
            member = {"auto-scaling-group": "ResourceId", "key": "Key", "value": "Value"}[one["Name"]]
            tags = [tag for tag in tags if tag[member] in one.get("Values", [])]
        return _page(asked, "Tags", tags)

    def _describe_groups(self, asked: Json) -> Json:
        """All groups, or those that are named; the stand-in knows no other filter."""
        names = asked.get("AutoScalingGroupNames")
        groups = [group for group in self._groups.values() if not names or group.name in names]
        described = [self._group(group, asked.get("IncludeInstances", True)) for group in groups]
        return _page(asked, "AutoScalingGroups", described)

    def _group(self, group: Group, with_instances: bool) -> Json:
        living = [one for one in self._living() if self._lives[one].group is group]
        return {
            "AutoScalingGroupName": group.name,
            "AutoScalingGroupARN": group.arn,
            "MinSize": 0,
            "MaxSize": 9,
            "DefaultCooldown": 300,
            "AvailabilityZones": ["us-east-1a"],
            "HealthCheckType": "EC2",
            "CreatedTime": datetime(2026, 11, 21, tzinfo=UTC),
            "Instances": [self._instance(one, "Healthy") for one in living] if with_instances else [],
            "Tags": _tags(group, True),
            **self.replacing.described(group.name),
        }

    def _describe_instances(self, asked: Json) -> Json:
        wanted = [one for one in self._living() if one in asked.get("InstanceIds", [])]
        names = {one: {"AutoScalingGroupName": self._lives[one].group.name} for one in wanted}
        return {"AutoScalingInstances": [{**self._instance(one, "HEALTHY"), **names[one]} for one in wanted]}

    def _living(self) -> list[str]:
        return [one for one, life in self._lives.items() if life.state != "Terminated"]

    def _instance(self, instance_id: str, health: str) -> Json:
        return {
            "InstanceId": instance_id,
            "AvailabilityZone": "us-east-1a",
            "LifecycleState": self._lives[instance_id].state,
            "HealthStatus": health,
            "ProtectedFromScaleIn": False,
        }

    def _describe_activities(self, asked: Json) -> Json:
        activities = self.replacing.activities(asked["AutoScalingGroupName"])
        return _page(asked, "Activities", activities, ACTIVITIES_ON_A_PAGE)

    def _begin(self, instance_id: str, move: Move) -> Deliveries:
        """Holds an instance for each hook that looks at such a move; answers what came of their events."""
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
        if move is hooks.TERMINATION or (move.transition == hooks.LAUNCHING and result == "ABANDON"):
            life.state = "Terminated"
            self._instances.terminate(instance_id)
        elif move.after == "Warmed:Stopped":
            self._notices.keep(instance_id, self._instances.go_through(instance_id, "stopping", "stopped"))
        elif move is hooks.ROOT_VOLUME_REPLACEMENT:
            self._instances.reboot(instance_id)
            self._notices.keep(instance_id, self._begin(instance_id, hooks.ROOT_VOLUME_REPLACED))

    def _known_group(self, asked: Json, member: str = "AutoScalingGroupName") -> Group:
        name = asked[member]
        if name not in self._groups:
            raise _invalid(f"AutoScalingGroup name not found - AutoScalingGroup {name} not found")
        return self._groups[name]

    def _find(self, asked: Json) -> Action:
        """The action that a call means: by its token when it has one, else by its instance."""
        token, instance_id = asked.get("LifecycleActionToken"), asked.get("InstanceId")
        hook = (self._known_group(asked).name, asked["LifecycleHookName"])
        if token is None and instance_id is None:
            raise _invalid("Either a lifecycle action token or an instance ID is required")
        for action in [one for life in self._lives.values() for one in life.actions if one.active]:
            meant = action.token == token if token is not None else action.instance_id == instance_id
            if meant and (action.group.name, action.hook.name) == hook:
                return action
        target = f"token {token}" if token is not None else f"instance ID {instance_id}"
        raise _invalid(f"No active Lifecycle Action found with {target}")

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


def _tags(group: Group, propagated: bool) -> list[Json]:
    of = {"ResourceId": group.name, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": propagated}
    return [{**of, "Key": key, "Value": value} for key, value in group.tags.items()]


def _page(asked: Json, what: str, members: list[Json], most: int = ON_A_PAGE) -> Json:
    start = int(asked.get("NextToken", "0"))
    end = start + asked.get("MaxRecords", most)
    more = {"NextToken": str(end)} if end < len(members) else {}
    return {what: members[start:end], **more}


def _invalid(message: str) -> AwsError:
    return AwsError(400, "ValidationError", message)
