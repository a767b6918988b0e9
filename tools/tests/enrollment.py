"""What the tests of tools/spillway enroll share: a stack, clusters, groups and objects to decide about."""

from typing import Any

from cluster_enrollment.clusters import Cluster
from cluster_enrollment.groups import Group
from cli.stack import Stack
from cluster_enrollment.step import Step

ROLE = "arn:aws:iam::111122223333:role/team/spillway-DrainRole-1A"


def stack(**parameters: str) -> Stack:
    return Stack("spillway", "eu-central-1", ROLE, "spillway-Drain-1A", parameters)


def cluster(name: str = "prod", mode: str = "API", **fields: Any) -> Cluster:
    return Cluster(name, "ACTIVE", mode, **fields)


def group(instances: dict[str, str] | None = None) -> Group:
    """The group workers, of the cluster prod."""
    return Group("workers", {"kubernetes.io/cluster/prod": "owned"}, instances or {})


def hook(name: str = "spillway", **values: Any) -> dict[str, Any]:
    made = {
        "LifecycleHookName": name,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "HeartbeatTimeout": 600,
        "DefaultResult": "CONTINUE",
    }
    return made | values


def managed(one: dict[str, Any], *managers: tuple[str, str] | tuple[str, str, str]) -> dict[str, Any]:
    """An object that these have applied or updated; a third word is a subresource."""
    entries = [{"manager": manager[0], "operation": manager[1]} | ({"subresource": manager[2]} if len(manager) > 2 else {}) for manager in managers]
    return {**one, "metadata": {**one["metadata"], "managedFields": entries, "resourceVersion": "7"}}


def told(step: Step) -> tuple[str, list[str]]:
    """The state, and the commands as a person reads them."""
    return step.state.value, [str(command) for command in step.commands]
