"""`spillway preview` and `spillway drill`: what is asked of AWS, and what is refused."""

from __future__ import annotations

import json
import os
import unittest
from typing import Any
from unittest import mock

from fault_drill import command as drill

from . import receipts
from .standin import StandIn

# Stands in for the program, which is Rust's: it refuses one template.
PROGRAM = """#!/bin/sh
[ "$*" = "--template -" ] || { echo "$*"; exit; }
! grep -q NoSuchField || { echo "A drain begins: the template fails at line 1" >&2; exit 1; }
"""


class Preview(StandIn):
    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch.dict(os.environ, {"CARGO_TARGET_DIR": str(self.folder)}))
        (self.folder / "good").write_text("{{ .Kind }}")
        (self.folder / "bad").write_text("{{ .NoSuchField }}")

    def test_program_beside_the_tools_renders(self) -> None:
        (self.folder / "debug").mkdir()
        self.program("debug/announce-preview", PROGRAM)
        self.assertEqual(self.spillway("preview").stdout, "--format slack\n")
        self.assertEqual(self.spillway("preview", "--template", "good").returncode, 0)
        bad = self.spillway("preview", "--template", "bad")
        self.assertEqual((bad.returncode, bad.stderr), (1, "A drain begins: the template fails at line 1\n"))
        self.assertEqual(self.calls(), [])

    def test_announcer_renders_without_the_program(self) -> None:
        self.stack(Webhook="/spillway/webhook")
        self.answers("describe-stack-resource", {"StackResourceDetail": {"PhysicalResourceId": "announcer-1"}})
        self.answers("invoke", {"StatusCode": 200})
        self.answers("function", {"messages": "A drain begins\n"})
        done = self.spillway("preview", "--template", "good")
        self.assertEqual((done.returncode, done.stdout), (0, "A drain begins\n"), done.stderr)
        self.assertEqual(json.loads((self.folder / "events").read_text()), {"spillway-preview": {"template": "{{ .Kind }}"}})
        self.answers("function", {"error": "at line 1"})
        self.assertEqual(self.spillway("preview").returncode, 1)
        self.answers("invoke", {"StatusCode": 200, "FunctionError": "Unhandled"})
        self.answers("function", {"errorMessage": "this function takes messages of the queue"})
        self.assertIn("the announcer announcer-1 failed: this function takes messages", self.spillway("preview").stderr)

    def test_missing_program_and_announcer_are_both_named(self) -> None:
        self.stack()
        done = self.spillway("preview")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no program announce-preview", done.stderr)
        self.assertIn("no deployed announcer: the stack spillway has neither Webhook nor TopicArn", done.stderr)


INSTANCE = "i-1234567890abcdef0"


def instance(**fields: Any) -> dict[str, Any]:
    tags = [{"Key": "spillway/drill", "Value": ""}, {"Key": "kubernetes.io/cluster/prod", "Value": "owned"}]
    made = {"InstanceId": INSTANCE, "State": {"Name": "running"}, "InstanceLifecycle": "spot", "Tags": tags, "PrivateDnsName": "ip-10-0-1-2"}
    return {**made, **fields}


class Drill(StandIn):
    def setUp(self) -> None:
        super().setUp()
        self.stack()
        self.instances(instance())

    def instances(self, *found: dict[str, Any]) -> None:
        self.answers("describe-instances", {"Reservations": [{"Instances": list(found)}]})

    def test_plan_names_the_node_and_changes_nothing(self) -> None:
        done = self.spillway("drill", "--plan")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"interrupts {INSTANCE}", done.stderr)
        self.assertIn("node ip-10-0-1-2 of cluster prod", done.stderr)
        self.assertEqual([call[1] for call in self.calls()], ["describe-stacks", "describe-instances"])
        self.stack(Clusters="stage", DryRun="true")
        warned = self.spillway("drill", "--plan").stderr
        self.assertIn("! the stack ignores cluster prod", warned)
        self.assertIn("DryRun=true", warned)

    def test_any_other_instance_is_refused(self) -> None:
        tag = [{"Key": "spillway/drill", "Value": ""}]
        for found, said in (
            ([], f"there is no instance {INSTANCE}"),
            ([instance(Tags=[])], "has not the tag spillway/drill: if it may go, tag it: aws ec2 create-tags"),
            ([instance(Tags=tag)], "has no tag kubernetes.io/cluster/NAME"),
            ([instance(InstanceLifecycle=None)], "is no spot instance"),
            ([instance(State={"Name": "stopping"})], "is stopping"),
        ):
            self.instances(*found)
            done = self.spillway("drill", INSTANCE, "--yes")
            self.assertEqual((done.returncode, self.calls("start-experiment")), (2, []))
            self.assertIn(said, done.stderr)
        self.instances(instance(), instance(InstanceId="i-0"))
        self.assertIn("2 instances have the tag spillway/drill: name one", self.spillway("drill", "--yes").stderr)
        self.instances(instance())
        self.assertIn("give --yes", self.spillway("drill").stderr)

    def test_receipt_is_awaited_and_the_experiment_deleted(self) -> None:
        for document, code in ((receipts.drained(), 0), ({**receipts.drained(), "ending": "failed"}, 1)):
            world = World(document)
            with mock.patch.object(drill, "Aws", lambda *_: world), mock.patch.object(drill, "PAUSE_S", 0), mock.patch("builtins.print"):
                self.assertEqual(drill.run(drill.parser().parse_args([INSTANCE, "--yes"])), code)
            self.assertEqual(world.done, ["deploy", "start-experiment", "get-experiment", "delete-stack"])

    def test_failed_experiment_is_reported_and_deleted(self) -> None:
        world = World(None)
        with mock.patch.object(drill, "Aws", lambda *_: world), mock.patch.object(drill, "PAUSE_S", 0), mock.patch("builtins.print"):
            with self.assertRaisesRegex(drill.Failed, "the experiment EXP failed: no rights"):
                drill.run(drill.parser().parse_args([INSTANCE, "--yes"]))
        self.assertEqual(world.done[-1], "delete-stack")


class World:
    """An account whose function writes the receipt after FIS was looked at once; without a receipt the experiment fails."""

    def __init__(self, receipt: receipts.Json | None) -> None:
        self.region, self.done, self.receipt = "eu-west-1", list[str](), receipt

    def text(self, *arguments: str) -> str:
        self.done.append(arguments[1])
        return ""

    def call(self, *arguments: str) -> Any:
        outputs = [{"OutputKey": key, "OutputValue": "x"} for key in ("RoleArn", "FunctionName", "LogGroupName")]
        state = {"status": "running"} if self.receipt else {"status": "failed", "reason": "no rights"}
        answers: dict[str, Any] = {
            "describe-stacks": {"Stacks": [{"StackId": "a:a:a:eu-west-1", "Outputs": outputs}]},
            "describe-instances": {"Reservations": [{"Instances": [instance()]}]},
            "describe-stack-resource": {"StackResourceDetail": {"PhysicalResourceId": "T"}},
            "start-experiment": {"experiment": {"id": "EXP"}},
            "get-experiment": {"experiment": {"state": state}},
            "filter-log-events": [json.dumps(self.receipt)] if "get-experiment" in self.done else [],
        }
        if arguments[1] in ("start-experiment", "get-experiment", "delete-stack"):
            self.done.append(arguments[1])
        return answers.get(arguments[1], {})


if __name__ == "__main__":
    unittest.main()
