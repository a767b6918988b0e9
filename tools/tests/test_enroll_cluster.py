"""tools/spillway enroll in one cluster: what is done in which order, and what is left when something before it is not as it should be.

AWS and kubectl are played here; with real ones it is tested end to end (tests/e2e/tests/enroll).
"""

import json
import unittest
from argparse import Namespace
from typing import Any
from unittest.mock import patch

from cluster_enrollment import enrolment, objects
from cli.aws import AwsError, Unusable
from cluster_enrollment.clusters import Cluster
from cluster_enrollment.enrolment import Result, Work
from cluster_enrollment.groups import Group
from cluster_enrollment.kubectl import KubectlError, Unreachable
from cli.stack import Stack
from cluster_enrollment.step import Command
from tests.enrollment import cluster, group, hook, managed, stack

OURS = {"kubernetesGroups": ["spillway"], "tags": {"spillway/enrolled": "spillway"}, "accessEntryArn": "arn:entry"}
ROLE = {"kind": "ClusterRole", "metadata": {"name": "spillway"}}


class World:
    """An account with one cluster, and what was done to it."""

    def __init__(self) -> None:
        self.entry: dict[str, Any] | None = None
        self.is_remembered = False
        self.hooks: list[dict[str, Any]] = []
        self.live: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.refuses: dict[str, Exception] = {}
        self.done: list[str] = []

    def call(self, *arguments: str) -> Any:
        answers = {
            "describe-access-entry": lambda: {"accessEntry": self._entry()},
            "describe-lifecycle-hooks": lambda: {"LifecycleHooks": self.hooks},
            "describe-instances": lambda: {"Reservations": []},
            "get-parameter": self._parameter,
        }
        return answers[arguments[1]]() if arguments[1] in answers else self.run(Command("aws", arguments))

    def run(self, command: Command) -> Any:
        what = " ".join(command.arguments[:2])
        if what in self.refuses:
            raise self.refuses[what]
        self.done.append(what)
        return ""

    def read(self, command: Command) -> list[dict[str, Any]]:
        what = command.arguments[0]
        if what in self.refuses:
            raise self.refuses[what]
        if what == "create":
            return [ROLE] if command.arguments[-1].endswith("rbac.yaml") else []
        if what == "apply":
            return [json.loads(command.stdin)]
        return self.nodes if "nodes" in command.arguments else self.live if command.arguments[1] != "configmap" else []

    def _parameter(self) -> dict[str, Any]:
        if not self.is_remembered:
            raise AwsError("ParameterNotFound", "there is none")
        return {"Parameter": {}}

    def _entry(self) -> dict[str, Any]:
        if self.entry is None:
            raise AwsError("ResourceNotFoundException", "there is none")
        return self.entry

    def visit(
        self, does: str = "enroll", of: Stack | None = None, plan: bool = False, of_group: Group | None = None, it: Cluster | None = None
    ) -> Result:
        options = Namespace(groups=True, extra=[], replace=False, remove=does == "remove")
        work = Work(self, of or stack(), [of_group or group()], options, plan)  # type: ignore[arg-type]
        with patch.object(enrolment, "Kubectl", lambda *_: self):
            return enrolment.visit(work, it or cluster())


def states(result: Result) -> list[str]:
    return [f"{step.state.value} {step.what}" for step in result.steps]


ENTRY, OBJECT, HOOK = "access entry", "ClusterRole spillway", "hook spillway of group workers"
PUT = ["eks create-access-entry", "apply --server-side", "autoscaling put-lifecycle-hook"]


class Enrolling(unittest.TestCase):
    def test_comes_before_what_stands_on_it(self) -> None:
        world = World()
        result = world.visit()
        self.assertEqual(world.done, PUT)
        self.assertEqual((result.with_hook, result.without_hook, result.is_fresh), (["workers"], [], True))

    def test_is_only_shown_by_a_plan(self) -> None:
        world = World()
        result = world.visit(plan=True)
        self.assertEqual((world.done, states(result)), ([], [f"to do {ENTRY}", f"to do {OBJECT}", f"to do {HOOK}"]))
        self.assertEqual((result.without_hook, result.is_fresh), (["workers"], False))

    def test_puts_no_hook_where_the_function_cannot_drain(self) -> None:
        for refused in ("eks create-access-entry", "apply --server-side"):
            world = World()
            world.refuses[refused] = AwsError("AccessDenied", "no") if refused.startswith("eks") else KubectlError("no")
            result = world.visit()
            self.assertNotIn("autoscaling put-lifecycle-hook", world.done)
            self.assertIn(f"told {HOOK}", states(result), refused)
            self.assertIn("failed", " ".join(states(result)))

    def test_ignored_hook_is_not_put(self) -> None:
        for parameters in ({"DryRun": "true"}, {"Clusters": "stage"}, {"DrainOn": "spot", "CordonOn": "off"}):
            world = World()
            self.assertIn(f"told {HOOK}", states(world.visit(of=stack(**parameters))), parameters)
            self.assertEqual(world.done, PUT[:2])
        for parameters in ({"Clusters": "prod"}, {"DrainOn": "spot", "CordonOn": "terminate"}):
            self.assertIn(f"done {HOOK}", states(World().visit(of=stack(**parameters))), parameters)

    def test_foreign_drained_group_is_left_alone(self) -> None:
        managed_by_eks = Group("blue", {"kubernetes.io/cluster/prod": "owned", "eks:nodegroup-name": "blue"})
        world = World()
        result = world.visit(of_group=managed_by_eks)
        self.assertEqual((world.done, result.with_hook + result.without_hook), (PUT[:2], []))

    def test_foreign_hook_of_the_name_is_reported(self) -> None:
        world = World()
        world.hooks = [hook(HeartbeatTimeout=60)]
        result = world.visit()
        self.assertIn(f"told {HOOK}", states(result))
        self.assertEqual(result.with_hook, ["workers"])

    def test_unreachable_cluster_gets_the_entry_and_commands(self) -> None:
        world = World()
        world.refuses = {"get": Unreachable("dial tcp"), "create": Unreachable("dial tcp")}
        result = world.visit()
        self.assertEqual((world.done, result.is_fresh), (PUT[:1], False))
        (step,) = (step for step in result.steps if step.what == "objects of deploy/")
        self.assertEqual(step.commands[0], "tools/spillway enroll --stack spillway --region eu-central-1 --cluster prod --groups")
        self.assertIn("deploy/rbac.yaml", str(step.commands[-1]))
        self.assertIn(f"told {HOOK}", states(result))

    def test_cluster_in_creation_or_undescribed_is_not_changed(self) -> None:
        for one, does, state in (
            (Cluster("prod", "CREATING", "API"), "enroll", "told cluster"),
            (cluster(refused="DescribeCluster: not authorized"), "enroll", "failed cluster"),
            (cluster(refused="DescribeCluster: not authorized"), "remove", "failed cluster"),
        ):
            world = World()
            self.assertEqual((states(world.visit(does, it=one)), world.done), ([state], []))

    def test_failed_cluster_does_not_stop_the_others(self) -> None:
        world = World()
        for error in (Unusable("expired"), AwsError("AccessDeniedException", "no")):
            with patch.object(World, "_entry", side_effect=error):
                self.assertEqual((states(world.visit()), world.done), (["failed cluster"], []))


class TakingAway(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.world.entry = OURS
        self.world.is_remembered = True
        self.world.hooks = [hook()]
        self.world.live = [managed(ROLE, (objects.MANAGER, "Apply"))]

    def test_begins_with_what_waits_for_the_function(self) -> None:
        result = self.world.visit("remove")
        wanted = ["autoscaling delete-lifecycle-hook", "delete ClusterRole", "eks delete-access-entry", "ssm delete-parameter"]
        self.assertEqual((self.world.done, result.is_fine(*enrolment.Part)), (wanted, True))

    def test_cluster_without_parameter_has_none_to_delete(self) -> None:
        self.world.is_remembered = False
        self.assertTrue(self.world.visit("remove").is_fine(*enrolment.Part))
        self.assertNotIn("ssm delete-parameter", self.world.done)

    def test_leaves_the_rights_while_a_node_drains(self) -> None:
        claim = json.dumps({"notice": "terminate lifecycle action", "cordoned": True})
        metadata = {"name": "n", "resourceVersion": "1", "annotations": {"spillway/claim": claim}}
        self.world.nodes = [{"metadata": metadata, "spec": {"providerID": "aws:///a/i-1"}}]
        with patch.object(enrolment, "_instances", lambda *_: {"i-1": enrolment.nodes.Instance("running", "Terminating:Wait")}):
            result = self.world.visit("remove")
        self.assertEqual(self.world.done, ["autoscaling delete-lifecycle-hook"])
        self.assertIn(f"told {ENTRY}", states(result))

    def test_unreachable_cluster_keeps_its_rights(self) -> None:
        self.world.refuses["get"] = Unreachable("dial tcp")
        result = self.world.visit("remove")
        self.assertEqual(self.world.done, ["autoscaling delete-lifecycle-hook"])
        self.assertIn(f"told {ENTRY}", states(result))
        self.assertIn("told objects of deploy/", states(result))


if __name__ == "__main__":
    unittest.main()
