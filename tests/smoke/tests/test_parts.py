"""The parts of the program that need no account."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.account import ACCOUNT, REGION, ROOT, TEMPLATE
from smoke import events, stage_a, stage_b
from smoke.command import main
from smoke.programs import Real
from smoke.resolve import Resolver
from smoke.step import SmokeError, plan

SAMPLES = {path.stem: json.loads(path.read_text()) for path in (ROOT / "events").glob("*.json")}


class ThePlan(unittest.TestCase):
    def test_it_names_each_step_and_its_cost_and_calls_nobody(self) -> None:
        # No credentials, and nobody to ask.
        environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "SPILLWAY_BED_PYTHON": sys.executable}
        command = [ROOT / "scripts/smoke", REGION, "--plan"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        for step in stage_a.steps() + stage_b.steps():
            self.assertIn(f"{step.does} ({step.minutes} min, {step.usd:.2f} USD)", done.stdout)

    def test_its_sums_are_those_of_its_steps(self) -> None:
        steps = stage_b.steps()
        head = plan("Stage B", steps).splitlines()[0]
        self.assertEqual(
            head,
            f"Stage B: about {sum(one.minutes for one in steps)} minutes, about {sum(one.usd for one in steps):.2f} USD",
        )

    def test_a_run_without_a_release_says_how_to_name_one(self) -> None:
        self.assertEqual(main([REGION]), 2)

    def test_a_program_that_is_missing_is_named(self) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            self.assertRaisesRegex(SmokeError, "no-such-program: it is not on the PATH"),
        ):
            Real(REGION, Path(folder)).run(Path(folder), "no-such-program")


class Resolved(unittest.TestCase):
    resolver = Resolver(TEMPLATE, ACCOUNT, REGION, "aws", "smoke")

    def test_no_function_is_left_in_what_is_sent(self) -> None:
        for name, resource in TEMPLATE["Resources"].items():
            if resource["Type"].split("::")[1] in ("IAM", "SQS", "Events", "CloudWatch", "Logs"):
                text = json.dumps(self.resolver.of(resource["Properties"]))
                self.assertNotRegex(text, r'"(Ref|Fn::\w+)":|\$\{(?!!)', name)

    def test_a_role_is_of_no_region(self) -> None:
        self.assertEqual(
            self.resolver.of({"Fn::GetAtt": ["DrainRole", "Arn"]}), f"arn:aws:iam::{ACCOUNT}:role/DrainRole"
        )


class RealEvents(unittest.TestCase):
    def test_a_sample_is_of_its_own_shape(self) -> None:
        for name, sample in SAMPLES.items():
            self.assertEqual(events.differences(events.shape(sample), events.shape(sample)), [], name)

    def test_a_field_that_is_new_and_one_that_is_gone_are_named(self) -> None:
        real = json.loads(json.dumps(SAMPLES["spot-interruption"]))
        del real["detail"]["instance-action"]
        real["detail"]["why"] = "capacity"
        found = events.nearest(real, SAMPLES)
        self.assertEqual(
            found,
            (
                "spot-interruption",
                [".detail.instance-action: only in the sample", ".detail.why: only in the real event"],
            ),
        )

    def test_other_contents_are_no_difference(self) -> None:
        real = {**SAMPLES["spot-interruption"], "id": "another", "resources": ["a", "b"]}
        self.assertEqual(events.nearest(real, SAMPLES), ("spot-interruption", []))

    def test_what_is_kept_names_neither_account_nor_instance(self) -> None:
        text = events.scrubbed(f'"{ACCOUNT}", "arn:aws:ec2:r:{ACCOUNT}:instance/i-0abcdef0123456789"', ACCOUNT)
        self.assertNotIn(ACCOUNT, text)
        self.assertNotIn("i-0abcdef0123456789", text)
