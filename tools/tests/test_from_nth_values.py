"""What is no use as values, and what is."""

import subprocess
import sys
import unittest
from pathlib import Path

from from_nth.installation import Installation, installation
from from_nth.values import Unusable, read

TOOLS = Path(__file__).parents[1]


def reading(text: str) -> Installation:
    return installation(read(text))


class WhatIsNoUse(unittest.TestCase):
    def assert_refused(self, text: str, *why: str) -> None:
        with self.subTest(text=text[:60]), self.assertRaises(Unusable) as refused:
            reading(text)
        for part in why:
            self.assertIn(part, str(refused.exception))

    def test_is_refused_in_words(self) -> None:
        self.assert_refused("", "it is empty")
        self.assert_refused("# only this\n", "nothing but comments")
        self.assert_refused("- dryRun\n", "a list at the top")
        self.assert_refused("dryRun", "a text at the top")
        self.assert_refused('["dryRun"]', "a list at the top")
        self.assert_refused("USER-SUPPLIED VALUES:\n", "it is empty")
        self.assert_refused("dryRun: &one {b: *one}", "Circular")
        self.assert_refused("[" * 100_000, "nested too deeply")

    def test_if_broken_names_the_place(self) -> None:
        self.assert_refused("dryRun: [true\nworkers: 1\n", "broken YAML: line 2, column 8")
        self.assert_refused('{"dryRun": true,}', "broken JSON: line 1, column 17")
        self.assert_refused("dryRun: true\n---\ndryRun: false\n", "broken YAML: line 2")
        self.assert_refused("dryRun: !!python/object/apply:os.getcwd []", "broken YAML: line 1")

    def test_names_a_key_that_is_in_it_twice(self) -> None:
        self.assert_refused("dryRun: true\nworkers: 1\ndryRun: false\n", "line 3: dryRun is in it twice")
        self.assert_refused("image:\n  tag: a\n  tag: b\n", "line 3: tag is in it twice")
        self.assert_refused('{"dryRun": true, "dryRun": false}', "dryRun is in it twice")

    def test_is_another_charts_values(self) -> None:
        self.assert_refused(
            "replicaCount: 2\nimage: {tag: v1}\nservice: {port: 80}\n", "not NTH's values", "replicaCount", "service"
        )
        self.assert_refused("dryrun: true\n", "not NTH's values", "dryrun (is it dryRun?)")

    def test_is_every_value_of_another_kind_all_told_at_once(self) -> None:
        self.assert_refused(
            "dryRun: maybe\nworkers: 1.5\nimage: v1\nqueueURL: [a]\n"
            "tolerations: {a: b}\nextraEnv: [3]\nwebhookHeaders: {a: b}\n",
            'dryRun has to be true or false, and is a text "maybe"',
            "workers has to be a whole number, and is a number",
            "image has to be a map, and is a text",
            "queueURL has to be a text, and is a list",
            "tolerations has to be a list, and is a map",
            "each entry of extraEnv has to be a map with a name",
            "webhookHeaders has to be a text, and is a map",
        )

    def test_is_a_false_that_helm_takes_for_true(self) -> None:
        self.assert_refused('enableSqsTerminationDraining: "false"', "Helm takes for true")

    def test_is_yaml_where_there_is_no_yaml_library(self) -> None:
        script = "import sys; sys.modules['yaml'] = None; from from_nth.command import main; sys.exit(main([]))"
        run = subprocess.run(
            [sys.executable, "-c", script], cwd=TOOLS, input="dryRun: true", capture_output=True, text=True
        )
        self.assertEqual(run.returncode, 1)
        self.assertIn("pip install pyyaml", run.stderr)
        self.assertIn("helm get values RELEASE --namespace NAMESPACE --output json | tools/from-nth", run.stderr)
        run = subprocess.run(
            [sys.executable, "-c", script], cwd=TOOLS, input='{"dryRun": true}', capture_output=True, text=True
        )
        self.assertEqual(run.returncode, 0, run.stderr)


class WhatIsRead(unittest.TestCase):
    def test_is_what_helm_get_values_writes(self) -> None:
        for text in (
            "USER-SUPPLIED VALUES:\nworkers: 5\n",
            "COMPUTED VALUES:\nworkers: 5\n",
            "workers: 5\n",
            '{"workers": 5}',
            '{"workers": 5.0}',
        ):
            with self.subTest(text=text):
                self.assertEqual(reading(text)["workers"], 5)

    def test_is_a_release_without_values(self) -> None:
        for text in ("null", "USER-SUPPLIED VALUES:\nnull\n", "{}"):
            with self.subTest(text=text):
                self.assertEqual(reading(text).given, [])

    def test_is_what_stands_under_an_umbrella_charts_key(self) -> None:
        nth = reading("nth:\n  dryRun: true\ningress:\n  enabled: true\n")
        self.assertEqual((nth.under, nth["dryRun"], nth.unknown), ("nth", True, []))

    def test_is_taken_as_nth_takes_it(self) -> None:
        nth = reading(
            'dryRun: "T"\ncordonOnly: 1\nworkers: "7"\nheartbeatUntil: 1.728e+05\nmanagedTag: 5\ntaintNode: null\n'
        )
        self.assertEqual([nth["dryRun"], nth["cordonOnly"], nth["workers"]], [True, True, 7])
        self.assertEqual([nth["heartbeatUntil"], nth["managedTag"], nth["taintNode"]], [172_800, "5", False])

    def test_is_the_default_where_it_is_empty(self) -> None:
        self.assertEqual(reading("managedTag: ''\n")["managedTag"], "aws-node-termination-handler/managed")
        self.assertEqual(reading("workers: ''\nextraEnv: [{name: LOG_LEVEL, value: ''}]\n")["logLevel"], "info")

    def test_is_what_extra_env_sets_after_the_value(self) -> None:
        nth = reading("workers: 5\nextraEnv:\n- {name: WORKERS, value: '6'}\n- {name: WORKERS, value: '7'}\n")
        self.assertEqual(nth["workers"], 7)
