"""The command line: the report, several clusters for one stack, the section of samconfig.toml, and what is refused.

To accept a change of the report: UPDATE_SNAPSHOTS=1, then read the diff.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from from_nth import sam
from from_nth.fleet import Contradiction, Source, closing, joined, merged
from from_nth.installation import installation

TOOL = (sys.executable, str(Path(__file__).parents[1] / "spillway"), "from-nth")
SAMPLES = Path(__file__).parent / "nth"
# No program that renders is found, and the width is that of no terminal.
ENVIRONMENT = {**os.environ, "CARGO_TARGET_DIR": "/nowhere", "XDG_CACHE_HOME": "/nowhere", "COLUMNS": "100"}
TEMPLATE = {"Clusters": {}, "Hooks": {}, "Taints": {}, "HookMaxWaitS": {"Default": "3600"}, "Webhook": {"Default": ""}}
QUEUE = {"enableSqsTerminationDraining": True}


def run_it(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOOL, *arguments], cwd=SAMPLES, env=ENVIRONMENT, input=given, capture_output=True, text=True, check=False)


class TheReport(unittest.TestCase):
    maxDiff = None

    def test_reads_well_for_a_sample(self) -> None:
        ran, snapshot = run_it("queue.yaml"), SAMPLES / "queue.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            snapshot.write_text(ran.stdout)
        self.assertEqual((ran.returncode, ran.stderr, ran.stdout), (0, "", snapshot.read_text()))
        self.assertIn("replicas: 2\n", run_it("--all", given=(SAMPLES / "queue.yaml").read_text()).stdout)

    def test_json_has_parameters_and_verdicts(self) -> None:
        document = json.loads(run_it("-o", "json", "--cluster", "prod", given='{"taintNode": true}').stdout)
        self.assertEqual(document["parameters"], {"Taints": "nth", "Clusters": "prod", "DryRun": "true"})
        self.assertEqual((document["values"][0]["value"], document["values"][0]["verdict"]), ("taintNode: true", "same"))

    def test_overrides_stand_alone_on_standard_output(self) -> None:
        ran = run_it("--hook", "drain", "--hook", "dns/drain", "--overrides", given='{"taintNode": true}')
        self.assertEqual(ran.stdout, "--parameter-overrides Taints=nth DryRun=true Hooks=drain,dns/drain\n")
        self.assertIn("SAME (", ran.stderr)

    def test_webhook_document_stands_alone(self) -> None:
        ran = run_it("--webhook", given='{"webhookURL": "https://x/y", "webhookHeaders": "{\\"a\\":\\"b\\"}"}')
        self.assertEqual(json.loads(ran.stdout), {"url": "https://x/y", "headers": {"a": "b"}})

    def test_unusable_input_is_refused_by_name(self) -> None:
        for arguments, given, why in (
            (["--overrides"], "- a\n", "standard input: it is a list"),
            (["/nowhere/values.yaml"], "", "/nowhere/values.yaml: No such file or directory"),
            (["a.yaml", "b=b.yaml"], "", "whose values are they?"),
            (["--cluster", "a", "a=queue.yaml"], "", "--cluster is for one file"),
            (["a=queue.yaml", "a=queue.yaml"], "", "a is named twice"),
            (["--set", "HookMaxWait=9"], "{}", "HookMaxWait=9: there is no such parameter; is it HookMaxWaitS?"),
            (["--set", "HookMaxWaitS=5"], "{}", "HookMaxWaitS=5: it takes 60 to"),
            ([], '{"nodeSelector": {"a": "b,"}}', "NodeSelector=a=b,: it takes what"),
        ):
            ran = run_it(*arguments, given=given)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""), why)
            self.assertIn(f"spillway from-nth: {why}", ran.stderr)


def source(*clusters: str, **values: object) -> Source:
    return Source(f"{'-'.join(clusters)}.yaml", installation(values), clusters)


def together(parts: dict[str, dict[str, str]], *sources: Source, **by_hand: str) -> tuple[dict[str, str], list[Contradiction]]:
    return merged(parts, list(sources), TEMPLATE, by_hand)


class Several(unittest.TestCase):
    def test_clusters_and_hooks_are_added_up(self) -> None:
        parts = {"a": {"Clusters": "a,b", "Hooks": "drain"}, "c": {"Clusters": "c,b"}, "d": {"Clusters": "d", "Hooks": "drain,nth"}}
        self.assertEqual(together(parts), ({"Clusters": "a,b,c,d", "Hooks": "drain,nth"}, []))

    def test_default_agrees_with_itself_alone(self) -> None:
        self.assertEqual(together({"a": {"HookMaxWaitS": "3600"}, "b": {}}), ({"HookMaxWaitS": "3600"}, []))
        parameters, (one,) = together({"a": {"HookMaxWaitS": "600"}, "b": {}})
        self.assertEqual((parameters, one.values), ({}, {"a": "600", "b": "3600 (the default)"}))

    def test_choice_by_hand_ends_a_contradiction(self) -> None:
        parts = {"a": {"Taints": "nth"}, "b": {"Taints": "spillway"}}
        self.assertEqual([one.parameter for one in together(parts)[1]], ["Taints"])
        self.assertEqual(together(parts, Taints="nth"), ({"Taints": "nth"}, []))

    def test_different_webhooks_contradict_without_being_shown(self) -> None:
        sources = [source("a", webhookURL="https://x/one"), source("b", webhookURL="https://x/two")]
        parameters, (one,) = together({one.name: {"Webhook": "/spillway/webhook"} for one in sources}, *sources)
        self.assertEqual((parameters, one.parameter), ({}, "Webhook"))
        self.assertNotIn("https", str(one))

    def test_clusters_with_the_same_values_are_one(self) -> None:
        found = joined([source("a", **QUEUE), source("b"), source("c", **QUEUE)])
        self.assertEqual([one.clusters for one in found], [("a", "c"), ("b",)])

    def test_steps_name_the_clusters_of_each_way(self) -> None:
        steps = closing({}, [source("a", **QUEUE), source("b", **QUEUE, checkTagBeforeDraining=False), source("c")])
        self.assertIn("a=a.yaml b=b.yaml c=c.yaml && sam deploy", steps)
        self.assertIn("6. docs/from-nth.md#queue-mode-one-group-at-a-time: a\n", steps)
        self.assertIn("7. docs/from-nth.md#imds-mode-or-all-at-once: b, c\n", steps)


class TheSection(unittest.TestCase):
    """Of samconfig.toml, which the command of a first cluster has written."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.samconfig = self.folder / "samconfig.toml"
        for name, wait in (("a", 600), ("b", 600), ("c", 900)):
            (self.folder / f"{name}.yaml").write_text(f"nodeTerminationGracePeriod: {wait}\n")

    def write(self, *arguments: str) -> tuple[int, str]:
        ran = run_it("--samconfig", str(self.samconfig), *(one.replace("@", str(self.folder)) for one in arguments))
        return ran.returncode, ran.stderr

    @property
    def parameters(self) -> dict[str, str]:
        return sam.parameters_of(self.samconfig.read_text()) or {}

    def test_keeps_the_first_cluster_when_a_second_comes(self) -> None:
        self.assertEqual(self.write("--live", "--cluster", "a", "@/a.yaml"), (0, ""))
        self.assertEqual(self.write("--live", "--cluster", "b", "@/b.yaml"), (0, ""))
        self.assertEqual(self.parameters, {"Clusters": "a,b", "HookMaxWaitS": "600", "DryRun": "false"})
        self.assertEqual(self.write("a=@/c.yaml", "b=@/c.yaml"), (0, ""), "all of its clusters are given once more")
        self.assertEqual(self.parameters, {"HookMaxWaitS": "900", "Clusters": "a,b", "DryRun": "true"})

    def test_contradiction_writes_no_section(self) -> None:
        self.write("--live", "--cluster", "a", "@/a.yaml")
        before = self.samconfig.read_text()
        code, said = self.write("--cluster", "c", "@/c.yaml")
        self.assertEqual((code, self.samconfig.read_text()), (1, before))
        for part in ("CONTRADICTIONS (2)", "HookMaxWaitS\n", "for a: 600\n", "c: 900\n", "DryRun\n", "nothing is written"):
            self.assertIn(part, said)

    def test_of_every_cluster_is_not_narrowed_to_one(self) -> None:
        self.write("@/a.yaml")
        code, said = self.write("--cluster", "b", "@/b.yaml")
        self.assertEqual(code, 1)
        self.assertIn("for every cluster: every cluster\n", said)
        self.assertEqual(self.write("--cluster", "b", "--set", "Clusters=b", "@/b.yaml")[0], 0)


if __name__ == "__main__":
    unittest.main()
