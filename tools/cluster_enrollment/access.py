"""Decides how the function's role gets into a cluster: by an access entry, or by a line in aws-auth that somebody else writes."""

from __future__ import annotations

from typing import Any

from cli.stack import Stack

from .clusters import Cluster
from .step import Part, State, Step, aws

GROUP = "spillway"
# On an access entry: this tool has made it, for the stack of that name.
TAG = "spillway/enrolled"


# As `aws eks describe-access-entry` returns it.
Entry = dict[str, Any]


def enroll(cluster: Cluster, stack: Stack, entry: Entry | None, aws_auth: str | None) -> Step:
    """`aws_auth`: the roles in the ConfigMap of that name; None if it could not be read."""
    if not cluster.takes_entries:
        return _line_in_aws_auth(stack, aws_auth)
    of_role = ("--cluster-name", cluster.name, "--principal-arn", stack.role)
    if entry is None:
        create = aws("eks", "create-access-entry", *of_role, "--kubernetes-groups", GROUP, "--tags", f"{TAG}={stack.name}")
        return _step(State.TO_DO, "", create)
    groups = entry.get("kubernetesGroups", [])
    if GROUP not in groups:
        # IAM has no condition keys for this call: the right would be one to enter any group.
        update = aws("eks", "update-access-entry", *of_role, "--kubernetes-groups", *groups, GROUP)
        return _step(State.TOLD, f"it lacks the group {GROUP}, which an administrator adds", update)
    return _step(State.THERE, "" if _is_ours(entry, stack) else "somebody else has made it")


def remove(cluster: Cluster, stack: Stack, entry: Entry | None, aws_auth: str | None) -> Step:
    if not cluster.takes_entries:
        if aws_auth is not None and arn_without_path(stack.role) not in aws_auth:
            return _line(State.THERE, "it is not there")
        return _line(State.TOLD, "take the function's line out by hand, if it is there", EDIT)
    delete = aws("eks", "delete-access-entry", "--cluster-name", cluster.name, "--principal-arn", stack.role)
    if entry is None:
        return _step(State.THERE, "there is none")
    if _is_ours(entry, stack):
        return _step(State.TO_DO, "", delete)
    return _step(State.TOLD, "somebody else has made it", delete)


def _is_ours(entry: Entry, stack: Stack) -> bool:
    return bool(entry.get("tags", {}).get(TAG) == stack.name)


def remembered(cluster: Cluster, stack: Stack) -> str:
    """The parameter in which the doctor has written where the cluster is: crates/eks/src/stored.rs."""
    return f"/spillway/{stack.name}/clusters/{cluster.name}"


def forget(name: str, parameter: Any) -> Step:
    if parameter is None:
        return Step(Part.ACCESS, f"parameter {name}", State.THERE, "there is none")
    return Step(Part.ACCESS, f"parameter {name}", State.TO_DO, "", (aws("ssm", "delete-parameter", "--name", name),))


def arn_without_path(role: str) -> str:
    front, _, name = role.partition(":role/")
    return f"{front}:role/{name.rpartition('/')[2]}"


EDIT = "kubectl -n kube-system edit configmap aws-auth"


def _line_in_aws_auth(stack: Stack, aws_auth: str | None) -> Step:
    arn = arn_without_path(stack.role)
    if aws_auth is not None and arn in aws_auth:
        return _line(State.THERE)
    line = f"- {{rolearn: {arn}, username: 'spillway:{{{{SessionName}}}}', groups: [{GROUP}]}}"
    why = "the cluster takes no access entries, its authentication mode is CONFIG_MAP: add this line below mapRoles"
    return _line(State.TOLD, why, EDIT, line)


def _line(state: State, why: str = "", *commands: str) -> Step:
    return Step(Part.ACCESS, "line in aws-auth", state, why, commands)


def _step(state: State, why: str = "", *commands: Any) -> Step:
    return Step(Part.ACCESS, "access entry", state, why, commands)
