"""One cluster from beginning to end: looks, has it decided, carries it out. In both directions what stands on something
comes after it, so that a run that is stopped in the middle leaves nothing that the next one does not finish.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from cli import Failed
from cli.aws import Aws, AwsError
from cli.stack import Stack

from . import access, groups, nodes, objects
from .clusters import Cluster
from .groups import Group
from .kubectl import Kubectl, KubectlError, Unreachable
from .step import Command, Part, State, Step, kubectl


@dataclass
class Result:
    cluster: str
    steps: list[Step] = field(default_factory=list)
    with_hook: list[str] = field(default_factory=list)
    without_hook: list[str] = field(default_factory=list)
    verdict: str = ""

    def of(self, part: Part) -> list[Step]:
        return [step for step in self.steps if step.part is part]

    def is_fine(self, *parts: Part) -> bool:
        """Returns `true` if no step of these parts failed or is left to a person."""
        return not any(step.state in (State.TOLD, State.FAILED) for step in self.steps if step.part in parts)

    @property
    def is_fresh(self) -> bool:
        """Returns `true` if this run let the function in."""
        let_in = [step for step in self.steps if step.part in (Part.ACCESS, Part.RIGHTS)]
        return self.is_fine(Part.ACCESS, Part.RIGHTS) and any(step.state is State.DONE for step in let_in)


@dataclass(frozen=True)
class Work:
    aws: Aws
    stack: Stack
    # Those of the Region.
    groups: list[Group]
    options: argparse.Namespace
    plan: bool


def visit(work: Work, cluster: Cluster) -> Result:
    """Visits one cluster. A failure ends the visit, and no other one."""
    result = Result(cluster.name)
    try:
        if cluster.refused:
            raise Failed(cluster.refused)
        with tempfile.TemporaryDirectory(prefix="spillway-enroll-") as folder:
            one = _Visit(work, cluster, Path(folder), result)
            one.remove() if work.options.remove else one.enroll()
    except Failed as error:
        result.steps.append(Step(Part.ACCESS, "cluster", State.FAILED, str(error)))
    return result


class _Visit:
    def __init__(self, work: Work, cluster: Cluster, folder: Path, result: Result) -> None:
        self._work, self._cluster, self._folder, self._result = work, cluster, folder, result
        self._closed: str | None = None

    def enroll(self) -> None:
        if self._cluster.status not in ("ACTIVE", "UPDATING"):
            why = f"the cluster is {self._cluster.status}: run it again when it is ACTIVE"
            self._carry_out([Step(Part.ACCESS, "cluster", State.TOLD, why)])
            return
        entry, aws_auth = self._entry(), self._aws_auth()
        self._carry_out([access.enroll(self._cluster, self._work.stack, entry, aws_auth)])
        self._carry_out(self._objects_to_apply())
        self._see_to_hooks()

    def remove(self) -> None:
        for group, hooks in self._groups():
            self._carry_out(groups.remove(group, hooks, self._work.stack))
        self._carry_out(self._nodes_to_give_back())
        entry, aws_auth = self._entry(), self._aws_auth()
        entry_away = access.remove(self._cluster, self._work.stack, entry, aws_auth)
        # After the entry: a doctor who is let in writes the parameter again.
        name = access.remembered(self._cluster, self._work.stack)
        forget = access.forget(name, self._found("ParameterNotFound", "ssm", "get-parameter", "--name", name))
        last = [*self._objects_to_delete(), entry_away, forget]
        if self._closed or any(step.drains or step.state is State.FAILED for step in self._result.steps):
            # Without rights a drain that is under way would end in its middle.
            last = [step.told("it is needed until what stands above is done: run it again then") for step in last]
        self._carry_out(last)

    def _entry(self) -> access.Entry | None:
        if not self._cluster.takes_entries:
            return None
        of_role = ("--cluster-name", self._cluster.name, "--principal-arn", self._work.stack.role)
        answer = self._found("ResourceNotFoundException", "eks", "describe-access-entry", *of_role)
        return None if answer is None else answer["accessEntry"]

    def _found(self, absent: str, *arguments: str) -> Any:
        """The answer of AWS; None for an error of this code."""
        try:
            return self._work.aws.call(*arguments)
        except AwsError as error:
            if error.code == absent:
                return None
            raise

    def _aws_auth(self) -> str | None:
        if self._cluster.takes_entries:
            return None
        maps = self._look(kubectl("get", "configmap", "aws-auth", "--namespace=kube-system", "--ignore-not-found"))
        return None if maps is None else "".join(one.get("data", {}).get("mapRoles", "") for one in maps)

    def _objects_to_apply(self) -> list[Step]:
        files = objects.files(self._work.stack, self._work.options.extra)
        named = [f"--filename={file}" for file in files]
        live = self._look(kubectl("get", *named, "--ignore-not-found", "--show-managed-fields"))
        there = {objects.key(one): one for one in live or []}
        steps = []
        for file, in_any_case in files.items():
            wanted = self._look(kubectl("create", "--dry-run=client", "--validate=false", f"--filename={file}")) or []
            if in_any_case or any(objects.is_ours(there.get(objects.key(one))) for one in wanted):
                steps += [self._object(one, file, there.get(objects.key(one))) for one in wanted]
        return [self._not_reached([file for file, wanted in files.items() if wanted])] if self._closed else steps

    def _object(self, wanted: dict[str, Any], file: Path, live: dict[str, Any] | None) -> Step:
        after: dict[str, Any] | str | None = None
        if objects.is_ours(live):
            try:
                (after,) = self._api.read(objects.apply(wanted, dry=True))
            except Unreachable:
                raise
            except KubectlError as error:
                # What follows is kubectl's advice to its own users.
                after = str(error).splitlines()[0].removeprefix("error: ")
        return objects.enroll(wanted, file, live, after)

    def _objects_to_delete(self) -> list[Step]:
        of_spillway = f"--selector={objects.LABEL}"
        live = self._look(kubectl("get", objects.KINDS, of_spillway, "--show-managed-fields"))
        return [self._not_reached([])] if live is None else [objects.remove(one) for one in live]

    def _not_reached(self, files: list[Path]) -> Step:
        """Commands for a person who can reach the cluster. Without files: those that delete."""
        stack, root = self._work.stack, objects.DEPLOY.parent
        private = "" if self._cluster.is_public else "; its endpoint is private, so run this from within its network"
        own = " --remove" if not files else " --groups" if self._work.options.groups else ""
        there = f"tools/spillway enroll --stack {stack.name} --region {stack.region} --cluster {self._cluster.name}{own}"
        sign_in = f"aws eks update-kubeconfig --region {stack.region} --name {self._cluster.name}"
        apply = f"kubectl apply --server-side --field-manager={objects.MANAGER}"
        names = "".join(f" -f {file.relative_to(root)}" for file in files)
        by_hand = f"{apply}{names}" if files else f"kubectl delete {objects.KINDS} --selector={objects.LABEL}"
        return Step(Part.RIGHTS, "objects of deploy/", State.TOLD, f"{self._closed}{private}", (there, "or:", sign_in, by_hand))

    def _groups(self) -> Iterable[tuple[Group, list[groups.Hook]]]:
        nodes_of = {nodes.instance_id(one) for one in self._look(kubectl("get", "nodes")) or []}
        for group in self._work.groups:
            if group.is_of(self._cluster.name, nodes_of) and not group.drained_by:
                told = self._work.aws.call("autoscaling", "describe-lifecycle-hooks", "--auto-scaling-group-name", group.name)
                yield group, told["LifecycleHooks"]

    def _see_to_hooks(self) -> None:
        why_not = self._why_no_hook()
        for group, hooks in self._groups():
            has_hook = groups.hook_name(hooks, self._work.stack) is not None
            if self._work.options.groups:
                steps = groups.enroll(group, hooks, self._work.stack, self._work.options.replace)
                ended = self._carry_out([step.told(why_not) for step in steps] if why_not else steps)
                has_hook = has_hook or ended[-1].state is State.DONE
            (self._result.with_hook if has_hook else self._result.without_hook).append(group.name)

    def _why_no_hook(self) -> str | None:
        """A hook that nobody completes delays the end of each instance."""
        if self._work.stack.is_dry_run:
            return "the stack has DryRun=true and completes no hook: run it again after DryRun=false"
        if not self._work.stack.serves(self._cluster.name):
            return "the stack ignores this cluster: its parameter Clusters names others"
        if not self._work.stack.completes_hooks:
            return "the stack ignores terminate hooks: neither DrainOn nor CordonOn has terminate"
        if not self._result.is_fine(Part.ACCESS, Part.RIGHTS):
            return "the function cannot drain here yet: fix the lines above"
        return None

    def _nodes_to_give_back(self) -> Iterable[Step]:
        claimed = nodes.claimed(self._look(kubectl("get", "nodes", "--show-managed-fields")) or [])
        instances = _instances(self._work.aws, [nodes.instance_id(one) for one in claimed])
        now = datetime.now(timezone.utc)
        return [nodes.remove(one, instances.get(nodes.instance_id(one), nodes.Instance()), now) for one in claimed]

    @cached_property
    def _api(self) -> Kubectl:
        return Kubectl(self._cluster, self._work.aws, self._folder)

    def _look(self, command: Command) -> list[dict[str, Any]] | None:
        """Objects of the API server; None if it is out of reach or refuses. It is asked once."""
        if self._closed:
            return None
        try:
            return self._api.read(command)
        except KubectlError as error:
            self._closed = str(error)
            return None

    def _carry_out(self, steps: Iterable[Step]) -> list[Step]:
        ended = [step if self._work.plan or step.state is not State.TO_DO else self._done(step) for step in steps]
        self._result.steps += ended
        return ended

    def _done(self, step: Step) -> Step:
        try:
            for command in step.commands:
                assert isinstance(command, Command), step
                self._api.run(command) if command.program == "kubectl" else self._work.aws.call(*command.arguments)
        except (AwsError, KubectlError) as error:
            return step.ended(State.FAILED, str(error))
        return step.ended(State.DONE)


def _instances(aws: Aws, ids: list[str]) -> dict[str, nodes.Instance]:
    if not ids:
        return {}
    # A filter: EC2 refuses to answer about any if one id in a list is gone.
    reservations = aws.call("ec2", "describe-instances", f"--filters=Name=instance-id,Values={','.join(ids)}")["Reservations"]
    states = {one["InstanceId"]: one["State"]["Name"] for each in reservations for one in each["Instances"]}
    if not states:
        return {}
    these = ("--instance-ids", *states)
    told = aws.call("autoscaling", "describe-auto-scaling-instances", *these)["AutoScalingInstances"]
    lifecycle = {one["InstanceId"]: one["LifecycleState"] for one in told}
    statuses = aws.call("ec2", "describe-instance-status", "--include-all-instances", *these)["InstanceStatuses"]
    awaited = {one["InstanceId"] for one in statuses if any(map(_is_ahead, one.get("Events", [])))}
    return {one: nodes.Instance(state, lifecycle.get(one, ""), one in awaited) for one, state in states.items()}


def _is_ahead(event: dict[str, Any]) -> bool:
    """EC2 keeps what is over for a week, and says so in front."""
    return not event.get("Description", "").startswith(("[Completed]", "[Canceled]"))
