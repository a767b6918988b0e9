"""Decides which Auto Scaling groups get the terminate hook, and the tag without which the function may not complete it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from cli.stack import Stack

from .step import Command, Part, State, Step, aws

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
# docs/contributing/decisions/0019-a-hooks-timeout-is-ten-minutes.md has the reason.
HEARTBEAT_S = 600
# On a group: this tool has put the tag of HookGroupTag there, so that it may take it off.
MARK = "spillway/enrolled"
# On a group and its instances: the group replaces an instance at the notice (crates/core/src/replacement.rs).
REPLACE = ("spillway:replace", "true")
# The tags that name a cluster, and those that say who drains a group's nodes: as crates/core/src/instance.rs reads them.
NAMES = ("aws:eks:cluster-name", "eks:cluster-name", "eks:eks-cluster-name")
KEY = "kubernetes.io/cluster/"
DRAINED_BY = {
    "eks:nodegroup-name": "EKS, as a managed node group",
    "karpenter.k8s.aws/ec2nodeclass": "Karpenter",
    "karpenter.sh/nodeclaim": "Karpenter",
    "karpenter.sh/nodepool": "Karpenter",
    "eks:eks-cluster-name": "EKS Auto Mode",
}


@dataclass(frozen=True)
class Group:
    name: str
    tags: dict[str, str]
    # The lifecycle state of each instance.
    instances: dict[str, str] = field(default_factory=dict)
    # Its policy TerminateHookAbandon=retain: an instance whose terminate hook is abandoned stays.
    keeps_abandoned: bool = False

    @classmethod
    def of(cls, described: dict[str, Any]) -> "Group":
        tags = {tag["Key"]: tag.get("Value", "") for tag in described.get("Tags", [])}
        instances = {one["InstanceId"]: one["LifecycleState"] for one in described.get("Instances", [])}
        triggers = described.get("InstanceLifecyclePolicy", {}).get("RetentionTriggers", {})
        keeps_abandoned = triggers.get("TerminateHookAbandon") == "retain"
        return cls(described["AutoScalingGroupName"], tags, instances, keeps_abandoned)

    @property
    def clusters(self) -> set[str]:
        shared = [key for key, value in self.tags.items() if key.startswith(KEY) and value in ("owned", "shared")]
        names = {key.removeprefix(KEY) for key in shared} | {self.tags.get(key, "") for key in NAMES}
        return names - {""}

    @property
    def default_result(self) -> str:
        """DefaultResult of the hook. ABANDON keeps the instance in a group that retains instances."""
        return "ABANDON" if self.keeps_abandoned else "CONTINUE"

    @property
    def drained_by(self) -> str | None:
        return next((who for key, who in DRAINED_BY.items() if key in self.tags), None)

    def is_of(self, cluster: str, nodes: set[str]) -> bool:
        """Returns `true` by the group's tags; without tags, by its instances among the cluster's nodes."""
        return cluster in self.clusters if self.clusters else not nodes.isdisjoint(self.instances)


Hook = dict[str, Any]


def enroll(group: Group, hooks: list[Hook], stack: Stack, replace_first: bool = False) -> list[Step]:
    if len(group.clusters) > 1:
        clusters = " and ".join(sorted(group.clusters))
        return [_step(group, "hook", State.TOLD, f"its tags name {clusters}, and an instance is drained in one cluster only")]
    if stack.managed_tag and not _has(group, *stack.managed_tag):
        why = f"the group lacks the tag {stack.parameters['ManagedTag']} of ManagedTag: the stack may ignore its instances"
        return [_step(group, "hook", State.TOLD, why)]
    return [*_tag(group, stack), *([_replaced(group)] if replace_first else []), _hook(group, hooks, stack)]


def _has(group: Group, key: str, value: str | None) -> bool:
    return key in group.tags and value in (None, group.tags[key])


def remove(group: Group, hooks: list[Hook], stack: Stack) -> list[Step]:
    steps = [_taken_off(group, hook) for hook in hooks if hook["LifecycleHookName"] in stack.hooks]
    if REPLACE[0] in group.tags:
        delete = _tags(group, "delete-tags", {"Key": REPLACE[0]})
        steps.append(_step(group, f"tag {REPLACE[0]}", State.TO_DO, "", delete))
    if MARK in group.tags and stack.group_tag:
        key = stack.group_tag[0]
        off = _step(group, f"tag {key}", State.TO_DO, "", _tags(group, "delete-tags", {"Key": key}, {"Key": MARK}))
        # Without it the function may not complete the hook that an instance waits in.
        steps.append(off.told("its drain needs it: run it again when it has gone") if any(one.drains for one in steps) else off)
    return steps


def hook_name(hooks: list[Hook], stack: Stack) -> str | None:
    """The terminate hook of the group that the function completes."""
    ours = (one["LifecycleHookName"] for one in hooks if one["LifecycleTransition"] == TERMINATING)
    return next((name for name in ours if name in stack.hooks), None)


def _hook(group: Group, hooks: list[Hook], stack: Stack) -> Step:
    by_name = {one["LifecycleHookName"]: one for one in hooks}
    if (name := hook_name(hooks, stack)) is not None:
        if is_as_made(group, by_name[name]):
            return _step(group, f"hook {name}", State.THERE)
        return _step(group, f"hook {name}", State.TOLD, f"it is left as it is: {_values(by_name[name])}", _put(group, name))
    name = stack.hooks[0]
    if name in by_name:
        return _step(group, f"hook {name}", State.TOLD, f"another hook has this name: {_values(by_name[name])}")
    return _step(group, f"hook {name}", State.TO_DO, "", _put(group, name))


def _tag(group: Group, stack: Stack) -> list[Step]:
    if stack.group_tag is None:
        return []
    key, value = stack.group_tag
    if key not in group.tags:
        texts = {key: value, MARK: stack.name}
        tags = [{"Key": one, "Value": text, "PropagateAtLaunch": False} for one, text in texts.items()]
        put = _tags(group, "create-or-update-tags", *tags)
        return [_step(group, f"tag {key}={value}", State.TO_DO, "HookGroupTag asks for it", put)]
    if group.tags[key] != value:
        why = f"the group has {key}={group.tags[key]}, and HookGroupTag asks for {value}: the function may not complete its hooks"
        return [_step(group, f"tag {key}={value}", State.TOLD, why)]
    return [_step(group, f"tag {key}={value}", State.THERE)]


def _replaced(group: Group) -> Step:
    key, value = REPLACE
    if _has(group, key, value):
        return _step(group, f"tag {key}={value}", State.THERE)
    put = _tags(group, "create-or-update-tags", {"Key": key, "Value": value, "PropagateAtLaunch": True})
    return _step(group, f"tag {key}={value}", State.TO_DO, "instances launched from now on get it", put)


def _taken_off(group: Group, hook: Hook) -> Step:
    name = hook["LifecycleHookName"]
    delete = aws("autoscaling", "delete-lifecycle-hook", "--auto-scaling-group-name", group.name, "--lifecycle-hook-name", name)
    if not is_as_made(group, hook):
        return _step(group, f"hook {name}", State.TOLD, f"it has other values than this tool's: {_values(hook)}", delete)
    # Auto Scaling would complete the hook of each instance that waits, in the middle of its drain. One that its group keeps
    # waits for nobody.
    may_wait = (one for one, state in group.instances.items() if state.startswith("Terminating") and state != "Terminating:Retained")
    if waiting := sorted(may_wait):
        why = f"{', '.join(waiting)} drains: run it again when it has gone"
        return replace(_step(group, f"hook {name}", State.TOLD, why), drains=True)
    return _step(group, f"hook {name}", State.TO_DO, "", delete)


def is_as_made(group: Group, hook: Hook) -> bool:
    return (
        hook["LifecycleTransition"] == TERMINATING
        and hook.get("HeartbeatTimeout") == HEARTBEAT_S
        and hook.get("DefaultResult") == group.default_result
        and not hook.get("NotificationTargetARN")
    )


def _values(hook: Hook) -> str:
    transition = hook["LifecycleTransition"].rpartition("_")[2].lower()
    values = [transition, f"{hook.get('HeartbeatTimeout')} s", hook.get("DefaultResult", "ABANDON")]
    if target := hook.get("NotificationTargetARN"):
        values.append(f"notifies {target}")
    return ", ".join(values)


def _put(group: Group, name: str) -> Command:
    return aws(
        *("autoscaling", "put-lifecycle-hook", "--auto-scaling-group-name", group.name, "--lifecycle-hook-name", name),
        *("--lifecycle-transition", TERMINATING, "--heartbeat-timeout", str(HEARTBEAT_S), "--default-result", group.default_result),
    )


def _tags(group: Group, operation: str, *tags: dict[str, Any]) -> Command:
    of_group = {"ResourceId": group.name, "ResourceType": "auto-scaling-group"}
    return aws("autoscaling", operation, "--tags", json.dumps([{**of_group, **tag} for tag in tags]))


def _step(group: Group, what: str, state: State, why: str = "", *commands: Any) -> Step:
    return Step(Part.GROUPS, f"{what} of group {group.name}", state, why, commands)
