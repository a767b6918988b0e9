"""tools/spillway enroll: which clusters are meant, what a mistake is answered with, what is printed. `aws` and `kubectl` are scripts here."""

import contextlib
import io
import json
import re
import subprocess
import unittest
from pathlib import Path
from typing import Any
from unittest import mock
from unittest.mock import patch

from tests.enrollment import cluster, stack

from cli import Failed, aws
from cluster_enrollment import clusters, command, doctor, kubectl, table
from cluster_enrollment.enrolment import Result
from cluster_enrollment.step import Part, State, Step

from .standin import StandIn

ROOT = Path(__file__).parents[2]


class WhichClusters(unittest.TestCase):
    THERE = ["prod", "stage", "test"]

    def test_names_decide_or_the_region(self) -> None:
        self.assertEqual(clusters.by_name([], self.THERE, stack()), self.THERE)
        self.assertEqual(clusters.by_name(["stage", "prod", "stage"], self.THERE, stack()), ["stage", "prod"])

    def test_unknown_cluster_stops_everything(self) -> None:
        for names, there, of, why in (
            (["prod", "prdo"], self.THERE, stack(), "no EKS cluster prdo in eu-central-1; there are: prod, stage, test.*--region"),
            (["prod", "gone"], self.THERE, stack(Clusters="prod,gone"), "the parameter Clusters names EKS cluster gone"),
            ([], [], stack(), "there is no EKS cluster in eu-central-1"),
        ):
            with self.assertRaisesRegex(Failed, why):
                clusters.by_name(names, there, of)

    def test_tag_needs_its_value(self) -> None:
        found = [cluster("prod", tags={"env": "live"}), cluster("stage", tags={"env": "test"}), cluster("bare")]
        self.assertEqual([one.name for one in clusters.with_tag(found, ("env", "live"))], ["prod"])
        for tag, why in ((("env", "dev"), "env=dev; its values are: live, test"), (("team", "a"), "team=a, and none has a tag with this key")):
            with self.assertRaisesRegex(Failed, why):
                clusters.with_tag(found, tag)

    def test_undescribed_cluster_is_reported_and_stops_no_other(self) -> None:
        class Eks:
            def call(self, *arguments: str) -> Any:
                if arguments[1] == "list-clusters":
                    return {"clusters": ["denied", "prod"]}
                if arguments[-1] == "denied":
                    raise aws.AwsError("AccessDeniedException", "DescribeCluster: not authorized")
                return {"cluster": {"status": "ACTIVE", "tags": {"env": "live"}}}

        for wanted in (["--all"], ["--tag", "env=live"]):
            denied, prod = clusters.find(Eks(), stack(), command.parser().parse_args(wanted))  # type: ignore[arg-type]
            self.assertEqual((denied.refused, prod.status), ("DescribeCluster: not authorized", "ACTIVE"))

    def test_ignored_cluster_gets_a_remark(self) -> None:
        (remark,) = clusters.remarks([cluster("stage")], stack(Clusters="prod"))
        self.assertIn("sam deploy --parameter-overrides Clusters=prod,stage", remark)


class WhatIsRefused(unittest.TestCase):
    def test_kind_of_error_is_read_from_the_words_of_the_program(self) -> None:
        denied = "An error occurred (AccessDenied) when calling the PutLifecycleHook operation: no"
        expired = "An error occurred (ExpiredToken) when calling the DescribeStacks operation: The security token is expired"
        for error, kind, words in (
            (aws._error("iam it", denied), aws.AwsError, "PutLifecycleHook: no"),
            (aws._error("iam it", f"\naws: [ERROR]: {denied}"), aws.AwsError, "PutLifecycleHook: no"),
            (aws._error("iam it", expired), aws.Unusable, "Sign in"),
            (aws._error("iam it", "Error when retrieving token from sso: Token has expired"), aws.Unusable, "Sign in"),
            (aws._error("iam it", "Unable to locate credentials."), aws.Unusable, "Sign in"),
            (kubectl._refusal("Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout"), kubectl.Unreachable, "dial tcp"),
            (kubectl._refusal("error: You must be logged in to the server (Unauthorized)"), kubectl.Unreachable, "access entry"),
            (kubectl._refusal('clusterroles.rbac is forbidden: User "x" cannot patch'), kubectl.KubectlError, "cannot patch"),
        ):
            self.assertEqual((type(error), words in str(error)), (kind, True), error)


def result(*steps: Step, verdict: str = "ok") -> Result:
    return Result("prod", list(steps), ["a"], ["b"], verdict)


def step(state: State, part: Part = Part.ACCESS) -> Step:
    return Step(part, "access entry", state, "because", ("do this",))


class TheDocuments(unittest.TestCase):
    # At the beginning of a line, or between backquotes; up to a comment or another command.
    COMMAND = re.compile(r"(?:^(?:    Value: !Sub )?|`)(tools/spillway enroll [^`\n#;&|]+)", re.MULTILINE)

    def test_commands_of_the_pages_are_accepted(self) -> None:
        pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "template.yaml"]
        found = [(page.name, words) for page in pages for words in self.COMMAND.findall(page.read_text())]
        # What only names an option has no clusters.
        whole = [(page, words) for page, words in found if re.search("--all|--cluster|--tag", words)]
        self.assertGreaterEqual(len(whole), 8)
        for page, words in whole:
            with self.subTest(page=page, command=words):
                command.parser().parse_args(words.split()[2:])

    def test_phrases_of_the_page_are_in_the_tool(self) -> None:
        table = (ROOT / "docs/troubleshooting.md").read_text().partition("## Enrolling")[2]
        said = "".join(file.read_text() for file in (ROOT / "tools/cluster_enrollment").glob("*.py"))
        phrases = re.findall(r"^\| \*(.+?)\* \|", table, re.MULTILINE)
        self.assertGreaterEqual(len(phrases), 8)
        for phrase in phrases:
            for words in re.split("…|;", phrase):
                with self.subTest(phrase=phrase):
                    self.assertIn(words.strip(), said)


class TheOutcome(unittest.TestCase):
    def test_is_in_the_exit_code(self) -> None:
        for found, code in (
            (result(step(State.THERE)), 0),
            (result(step(State.DONE)), 0),
            (result(step(State.DONE), verdict="warn: nth-runs (cluster prod)"), 0),
            (result(step(State.TO_DO), verdict=""), 3),
            (result(step(State.TO_DO), step(State.TOLD), verdict=""), 1),
            (result(step(State.FAILED)), 1),
            (result(step(State.DONE), verdict="fail: no-rights (cluster prod)"), 1),
            (result(step(State.DONE), verdict="unknown: no answer"), 1),
        ):
            self.assertEqual(command.exit_code([found]), code, found)

    def test_is_a_row_with_the_worst_of_each_part(self) -> None:
        found = result(step(State.DONE), step(State.TOLD), step(State.THERE, Part.RIGHTS))
        self.assertEqual(
            table.table([found]).splitlines(), ["CLUSTER  ACCESS  RIGHTS  HOOKS          DOCTOR", "prod     told    there   1 of 2 groups  ok"]
        )

    def test_control_characters_of_names_are_replaced(self) -> None:
        step = Step(Part.NODES, "node n", State.TOLD, "it drains (\x1b[2J\u202e): wait\nor not", ("kubectl describe node n",))
        text = table.steps(result(step)) + table.table([result(verdict="fail: \x07")])
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\u202e]")
        self.assertIn("wait or not", text)

    def test_is_json_for_a_pipeline(self) -> None:
        document = json.loads(table.as_json([result(step(State.TOLD))], ["remark"], 1))
        (one,) = document["clusters"]
        self.assertEqual((document["exit_code"], document["remarks"]), (1, ["remark"]))
        self.assertEqual((one["access"], one["doctor"], one["steps"][0]["commands"]), ("told", "ok", ["do this"]))

    def test_doctor_verdict_is_the_status_with_the_worst_finding(self) -> None:
        findings = [{"severity": severity, "id": id, "object": "cluster prod"} for severity, id in (("warn", "a"), ("fail", "b"), ("fail", "c"))]
        for answer, verdict in (
            ({"status": "fail", "checks": [{"findings": findings}]}, "fail: b (cluster prod) and 1 more"),
            ({"status": "ok", "checks": []}, "ok"),
            ({"errorMessage": "timed out"}, "unknown: timed out"),
            (aws.Unusable("expired"), "unknown: expired"),
        ):
            with patch.object(doctor, "ask", side_effect=[answer]):
                self.assertEqual(doctor.verdict(aws.Aws(), stack(), "prod", False), verdict)


class TheTool(StandIn):
    def refused(self, stderr: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`aws` refuses everything with these words."""
        self.program("aws", f"#!/bin/sh\necho '{stderr}' >&2\nexit 254\n")
        return self.spillway("enroll", *arguments)

    def test_failure_before_a_cluster_is_one_line_with_the_remedy(self) -> None:
        no_stack = "An error occurred (ValidationError) when calling the DescribeStacks operation: Stack with id x does not exist"
        for said, words in (
            (no_stack, "there is no stack spillway in this Region"),
            ("Could not connect to the endpoint URL", "Could not connect"),
        ):
            ran = self.refused(said, "--all", "--yes")
            self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran)
            self.assertIn(words, ran.stderr)
            self.assertTrue(ran.stderr.startswith("spillway enroll: "), ran.stderr)
        self.assertIn("aws is not on the PATH", self.spillway("enroll", "--all", "--yes", path="/nowhere").stderr)

    def test_clusters_are_those_of_the_stacks_region(self) -> None:
        """Clusters and groups of other Regions may have the same names."""
        self.stack()
        self.answers("list-clusters", {"clusters": ["prod"]})
        ran = self.spillway("enroll", "--yes", "--cluster", "shop")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("no EKS cluster shop in eu-west-1; there are: prod", ran.stderr)
        self.assertIn("--region eu-west-1 ", " ".join(self.calls("list-clusters")[0]))

    def test_changes_without_a_terminal_need_yes(self) -> None:
        for arguments in (["--all"], ["--all", "-o", "json"], ["--all", "--remove"]):
            ran = self.refused("nothing is asked of AWS", *arguments)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr.count("\n")), (2, "", 1))
            self.assertIn("give --yes, or look with --plan", ran.stderr)

    def test_answer_decides_whether_the_plan_is_carried_out(self) -> None:
        found, deployed = [cluster("prod")], mock.Mock(region="eu-central-1")
        for answer, plans, code in (("n", [True], 3), ("", [True], 3), ("y", [True, False], 0)):
            made: list[bool] = []

            def visit(work: Any, cluster: Any) -> Result:
                made.append(work.plan)
                return Result(cluster.name, [Step(Part.ACCESS, "access entry", State.TO_DO if work.plan else State.DONE)])

            with (
                mock.patch.multiple(command, visit=visit, Aws=mock.MagicMock()),
                mock.patch.object(command.stack, "read", return_value=deployed),
                mock.patch.object(command.clusters, "find", return_value=found),
                mock.patch.object(command.clusters, "remarks", return_value=[]),
                mock.patch.object(command.doctor, "verdict", return_value="ok"),
                mock.patch("sys.stdin.isatty", return_value=True),
                mock.patch("builtins.input", return_value=answer),
                contextlib.redirect_stdout(io.StringIO()),
            ):
                self.assertEqual((command.run(command.parser().parse_args(["--all"])), made), (code, plans), answer)


if __name__ == "__main__":
    unittest.main()
