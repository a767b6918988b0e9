"""A whole run in a pretended account: every AWS call of the program is made, and each is as AWS' model has it."""

import ast
import contextlib
import tempfile
import unittest
from pathlib import Path
from typing import Any

from tests.account import ROOT, Pretended, PretendedPrograms, refused, run_in
from smoke import receipts, stage_a, stage_b, teardown
from smoke.command import carry_out
from smoke.run import TAG, Run
from smoke.step import SmokeError, Step

SOURCES = sorted((ROOT / "tests/smoke/smoke").glob("*.py"))
# Called by the command line before a run begins.
AT_THE_BEGINNING = {("sts", "GetCallerIdentity")}
# Asked when a stack was not made.
AFTER_A_FAILURE = {("cloudformation", "DescribeStackEvents")}


def written() -> set[tuple[str, str]]:
    """Each call in the program's sources: `….call("service", "Operation", …)`."""
    calls = [node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    named = [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "call"]
    return {tuple(argument.value for argument in one.args[:2]) for one in named}  # type: ignore[attr-defined, misc]


class InTheAccount(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.run_ = run_in(self.folder)
        self.aws: Pretended = self.run_.aws  # type: ignore[assignment]

    def carry_out(self, steps: Any = None, record: Path | None = None) -> None:
        carry_out(self.run_, stage_a.steps() + stage_b.steps() if steps is None else steps, record)


class ARun(InTheAccount):
    def test_each_call_that_is_written_is_made_as_the_model_has_it(self) -> None:
        self.carry_out()
        made = {(service, operation) for service, operation, _ in self.aws.calls}
        self.assertEqual(written() - AT_THE_BEGINNING - AFTER_A_FAILURE, made)

    def test_what_is_made_has_the_tag(self) -> None:
        self.carry_out()
        for operation, parameters in ((name, asked) for name in TAGGED for asked in self.aws.called(name)):
            self.assertIn(
                TAG, str({key: value for key, value in parameters.items() if key.lower().startswith("tag")}), operation
            )

    def test_at_the_end_no_stack_is_left(self) -> None:
        self.carry_out()
        self.assertEqual(self.aws.stacks, set())

    def test_no_change_set_is_executed(self) -> None:
        self.carry_out(stage_a.steps())
        self.assertEqual(len(self.aws.called("CreateChangeSet")), 6)
        self.assertEqual(self.aws.called("ExecuteChangeSet"), [])

    def test_each_parameter_that_a_change_set_names_is_the_templates(self) -> None:
        self.carry_out(stage_a.steps())
        named = {one["ParameterKey"] for asked in self.aws.called("CreateChangeSet") for one in asked["Parameters"]}
        self.assertLessEqual(named, set(self.run_.template["Parameters"]))
        sent = [command for command in self.deployed() if "=" in command and not command.startswith(TAG)]
        self.assertLessEqual({one.partition("=")[0] for one in sent}, set(self.run_.template["Parameters"]))

    def deployed(self) -> list[str]:
        programs: PretendedPrograms = self.run_.programs  # type: ignore[assignment]
        return [word for command in programs.commands if command[:2] == ("sam", "deploy") for word in command]

    def test_real_events_are_kept_without_the_account(self) -> None:
        self.carry_out(record=self.folder / "recorded")
        (kept,) = (self.folder / "recorded").iterdir()
        self.assertEqual(kept.name, "aws-ec2-ec2-spot-instance-interruption-warning.json")


# What makes something that lasts.
TAGGED = ("CreateStack", "CreateChangeSet", "CreateLogGroup", "PutBucketTagging", "StartExperiment")


class AStepThatFails(InTheAccount):
    def fails(self, operation: str, **answer: Any) -> str:
        self.aws.answers[operation] = lambda _: answer
        with self.assertRaises(SmokeError) as failed:
            self.carry_out()
        self.assertEqual(self.aws.stacks, set(), "it was taken away all the same")
        return str(failed.exception)

    def test_a_change_set_that_cloudformation_refuses(self) -> None:
        said = self.fails("DescribeChangeSet", Status="FAILED", StatusReason="no such resource type")
        self.assertEqual(said, "the change set default: no such resource type")

    def test_a_pattern_that_eventbridge_reads_otherwise(self) -> None:
        self.assertIn(
            "DrainInterruption: spot-interruption does not pass", self.fails("TestEventPattern", Result=False)
        )

    def test_a_policy_that_access_analyzer_objects_to(self) -> None:
        finding = {"findingType": "ERROR", "issueCode": "INVALID_ACTION", "findingDetails": "no such action"}
        said = self.fails("ValidatePolicy", findings=[{**finding, "learnMoreLink": "https://example", "locations": []}])
        self.assertIn("ERROR INVALID_ACTION: no such action", said)

    def test_a_dashboard_that_cloudwatch_objects_to(self) -> None:
        said = self.fails("PutDashboard", DashboardValidationMessages=[{"DataPath": "/widgets/0", "Message": "bad"}])
        self.assertEqual(said, "the dashboard's /widgets/0: bad")

    def test_a_query_that_logs_insights_refuses(self) -> None:
        self.assertIn("ended as Failed", self.fails("GetQueryResults", status="Failed"))

    def test_a_drain_that_did_not_end_in_drained(self) -> None:
        self.assertIn("failed, not drained", self.fails("FilterLogEvents", events=[{"message": FAILED}]))

    def test_a_receipt_behind_an_empty_page_is_found(self) -> None:
        pages = iter([{"events": [], "nextToken": "more"}, {"events": [{"message": "{}"}]}])
        self.aws.answers["FilterLogEvents"] = lambda _: next(pages)
        self.assertEqual(list(receipts.lines(self.run_, "group")), [{}])
        self.assertEqual(self.aws.called("FilterLogEvents")[1]["nextToken"], "more")

    def test_a_stack_that_was_not_made_tells_why(self) -> None:
        described = self.aws.answers["DescribeStacks"]

        def failed(asked: dict[str, Any]) -> dict[str, Any]:
            (stack,) = described(asked)["Stacks"]
            return {"Stacks": [{**stack, "StackStatus": "CREATE_FAILED"}]}

        self.aws.answers["DescribeStacks"] = failed
        event = {
            "StackId": "s",
            "EventId": "e",
            "StackName": "s",
            "Timestamp": 1,
            "ResourceStatusReason": "no spot capacity",
        }
        self.aws.answers["DescribeStackEvents"] = lambda _: {"StackEvents": [event]}
        with self.assertRaisesRegex(SmokeError, "CREATE_FAILED: no spot capacity"):
            self.carry_out()


FAILED = '{"ending": "failed", "instance": "i-0", "reason": "no access", "source": "aws.ec2", "detail-type": "x"}'


class TheTeardown(InTheAccount):
    def test_it_comes_after_an_interruption_too(self) -> None:
        def interrupted(_: Run) -> None:
            self.aws.stacks.add(teardown.CLUSTER)
            raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            self.carry_out([Step("one", "is interrupted", interrupted)])
        self.assertEqual(self.aws.stacks, set())

    def test_it_goes_on_after_a_failure_and_names_what_is_left(self) -> None:
        def no(asked: dict[str, Any]) -> dict[str, Any]:
            raise refused("DeleteStack", "AccessDenied", f"not {asked['StackName']}")

        self.aws.answers["DeleteStack"] = no
        with self.assertRaises(SmokeError) as failed:
            teardown.everything(self.run_)
        for name in (teardown.SPILLWAY, teardown.CLUSTER, teardown.DRILL):
            self.assertIn(f"not {name}", str(failed.exception))
        self.assertEqual(len(self.aws.called("DeleteBucket")), 1)

    def test_a_stack_that_is_not_deleted_at_once_is_deleted_again(self) -> None:
        ends = iter(["DELETE_FAILED", "DELETE_COMPLETE"])
        stack = {"StackName": "s", "CreationTime": 1}
        self.aws.answers["DescribeStacks"] = lambda _: {"Stacks": [{**stack, "StackStatus": next(ends)}]}
        teardown.stack(self.run_, "s")
        self.assertEqual(len(self.aws.called("DeleteStack")), 2)

    def test_what_was_never_made_is_no_failure(self) -> None:
        def none(_: dict[str, Any]) -> dict[str, Any]:
            raise refused("ListObjectsV2", "NoSuchBucket")

        self.aws.answers["ListObjectsV2"] = none
        teardown.everything(self.run_)

    def test_an_instance_that_has_gone_is_no_leftover(self) -> None:
        arns = ["arn:aws:ec2:r:1:instance/i-0cccccccccccccccc", "arn:aws:sqs:r:1:queue"]
        self.aws.answers["GetResources"] = lambda _: {"ResourceTagMappingList": [{"ResourceARN": one} for one in arns]}
        self.assertEqual(teardown.tagged(self.run_), ["arn:aws:sqs:r:1:queue"])
