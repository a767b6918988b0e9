"""The report as a person reads it at a terminal, and the command line.

To accept a change: UPDATE_SNAPSHOTS=1, then read the diff.
"""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from from_nth import values
from from_nth.installation import installation
from from_nth.report import convert, render

from tests.test_from_nth_conversion import LATER, SAMPLES

TOOL = (str(Path(__file__).parents[1] / "spillway"), "from-nth")


class TheReport(unittest.TestCase):
    maxDiff = None

    def assert_as_before(self, name: str, report: str) -> None:
        snapshot = SAMPLES / f"{name}.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            snapshot.write_text(report)
        self.assertEqual(report, snapshot.read_text())

    def test_reads_well_for_each_sample(self) -> None:
        for sample in ("imds", "kitchen-sink"):
            with self.subTest(sample=sample):
                nth = installation(values.read((SAMPLES / f"{sample}.yaml").read_text()))
                with mock.patch.multiple("message_preview.command", program=lambda: "it", rendered=lambda *_: ("", "")):
                    report = render(convert(nth, LATER), 100, everything=True)
                self.assert_as_before(sample, report)

    def test_reasons_are_wrapped_and_commands_are_not(self) -> None:
        nth = installation({"webhookURLSecretName": "nth-slack"})
        lines = render(convert(nth, LATER), 60).splitlines()
        commands = [line for line in lines if line.lstrip().startswith("$")]
        self.assertEqual(len(commands), 1)
        self.assertLessEqual(max(len(line) for line in lines if line not in commands and line != lines[0]), 60)


class TheCommand(unittest.TestCase):
    def run_it(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *TOOL, *arguments], input=given, capture_output=True, text=True, check=False)

    def test_reads_a_file_and_standard_input_alike(self) -> None:
        sample = SAMPLES / "queue.yaml"
        of_file = self.run_it(str(sample))
        self.assertEqual((of_file.returncode, of_file.stderr), (0, ""))
        # The commands at its end name the file.
        report = of_file.stdout.split("To change over")[0]
        for run in (self.run_it(given=sample.read_text()), self.run_it("-", given=f"USER-SUPPLIED VALUES:\n{sample.read_text()}")):
            self.assertEqual(run.stdout.split("To change over")[0], report)

    def test_writes_the_parameters_alone_where_they_are_piped_on(self) -> None:
        sample = str(SAMPLES / "queue.yaml")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "samconfig.toml"
            for run, dry_run in ((["--samconfig", str(file)], "true"), (["--live", "--samconfig", str(file)], "false")):
                section = self.run_it(*run, sample)
                self.assertEqual(section.returncode, 0, section.stderr)
                overrides = tomllib.loads(file.read_text())["from-nth"]["deploy"]["parameters"]["parameter_overrides"]
                self.assertLessEqual({"HookMaxWaitS=600", f"DryRun={dry_run}"}, set(overrides))
            self.assertIn("NOT NEEDED", section.stdout)
        self.assertIn("PARAMETERS (", self.run_it(sample).stdout)
        overrides = self.run_it("--overrides", sample)
        self.assertRegex(overrides.stdout, r"^--parameter-overrides .*\bHookMaxWaitS=600\b.*\n$")
        self.assertIn("NOT NEEDED", overrides.stderr)

    def test_hook_option_sets_the_parameter_hooks(self) -> None:
        overrides = self.run_it("--hook", "drain", "--hook", "dns/drain", "--overrides", str(SAMPLES / "queue.yaml"))
        self.assertRegex(overrides.stdout, r" Hooks=drain,dns/drain\b")
        self.assertIn("--hook NAME", self.run_it(str(SAMPLES / "queue.yaml")).stdout)

    def test_missing_parameter_ends_with_1(self) -> None:
        cut_off = {"nodeSelector": {"a": "b,"}}
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "samconfig.toml")
            for option in ([], ["--samconfig", file], ["--overrides"]):
                run = self.run_it(*option, given=json.dumps(cut_off))
                self.assertEqual(run.returncode, 1)
                self.assertTrue(run.stderr.endswith("this version lacks some of the parameters; without them Spillway does its default\n"))
        self.assertEqual(self.run_it("--overrides", given='{"logLevel": "debug", "jsonLogging": true}').returncode, 0)

    def test_refuses_a_wrong_parameter_of_the_reader(self) -> None:
        for given, why in (
            ("HookMaxWait=9", "there is no such parameter; is it HookMaxWaitS?"),
            ("HookMaxWaitS=abc", "it takes 60 to"),
            ("HookMaxWaitS=5", "it takes 60 to"),
        ):
            run = self.run_it("--set", given, given='{"nodeTerminationGracePeriod": 600}')
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertIn(f"spillway from-nth: --set {given}: {why}", run.stderr)

    def test_values_without_need_are_counted_and_listed_with_all(self) -> None:
        sample = str(SAMPLES / "queue.yaml")
        self.assertIn("NOT NEEDED (12): --all shows them\n", self.run_it(sample).stdout)
        self.assertNotIn("replicas: 2", self.run_it(sample).stdout)
        self.assertIn("replicas: 2", self.run_it("--all", sample).stdout)

    def test_json_has_parameters_and_verdicts(self) -> None:
        document = json.loads(self.run_it("-o", "json", "--cluster", "prod", given='{"taintNode": true}').stdout)
        self.assertEqual(document["parameters"], {"Taints": "nth", "Clusters": "prod", "DryRun": "true"})
        self.assertEqual((document["values"][0]["value"], document["values"][0]["verdict"]), ("taintNode: true", "same"))

    def test_steps_follow_the_order_of_the_guide(self) -> None:
        steps = self.run_it(str(SAMPLES / "queue.yaml")).stdout.split("To change over")[1]
        places = [
            steps.index(step)
            for step in ("a dry run", "tools/spillway enroll", "tools/spillway doctor,", "--live", "5. tools/spillway doctor", "NTH's tag off")
        ]
        self.assertEqual(places, sorted(places))
        self.assertIn("ManagedTag=spillway/managed", self.run_it(str(SAMPLES / "queue.yaml")).stdout)

    def test_writes_the_webhooks_document_alone(self) -> None:
        run = self.run_it("--webhook", given='{"webhookURL": "https://x/y", "webhookHeaders": "{\\"a\\":\\"b\\"}"}')
        self.assertEqual(json.loads(run.stdout), {"url": "https://x/y", "headers": {"a": "b"}})

    def test_broken_file_is_refused_by_name(self) -> None:
        run = self.run_it("--overrides", given="- a\n")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertEqual(run.stderr, "spillway from-nth: standard input: it is a list at the top, where Helm values are a map\n")
        missing = self.run_it("/nowhere/values.yaml")
        self.assertEqual(missing.stderr, "spillway from-nth: /nowhere/values.yaml: cannot be read: No such file or directory\n")
