"""Several clusters' values for one stack: merged, or told where they contradict each other, and no cluster forgotten."""

import tempfile
import unittest
from pathlib import Path

from from_nth import sam
from from_nth.closing import closing
from from_nth.fleet import Contradiction, Part, Source, joined, merged
from from_nth.installation import installation
from from_nth.parameters import document
from from_nth.template import Parameter
from from_nth.values import Unusable

from tests import test_from_nth_report

TEMPLATE = {name: Parameter(default=default) for name, default in (("Clusters", ""), ("Taints", ""), ("HookMaxWaitS", "3600"))}
QUEUE = {"enableSqsTerminationDraining": True}


def source(*clusters: str, **values: object) -> Source:
    return Source(f"{'-'.join(clusters)}.yaml", installation(values), clusters)


def together(parts: dict[str, dict[str, str]], **by_hand: str) -> tuple[dict[str, str], list[Contradiction]]:
    return merged([Part(name, its) for name, its in parts.items()], [], TEMPLATE, by_hand)


class Several(unittest.TestCase):
    def test_clusters_and_hooks_are_added_up(self) -> None:
        parts = {"a": {"Clusters": "a,b", "Hooks": "drain"}, "c": {"Clusters": "c,b"}, "d": {"Clusters": "d", "Hooks": "drain,nth"}}
        self.assertEqual(together(parts), ({"Clusters": "a,b,c,d", "Hooks": "drain,nth"}, []))

    def test_a_default_agrees_with_itself_and_with_no_other_value(self) -> None:
        self.assertEqual(together({"a": {"HookMaxWaitS": "3600"}, "b": {}}), ({"HookMaxWaitS": "3600"}, []))
        parameters, (one,) = together({"a": {"HookMaxWaitS": "600"}, "b": {}})
        self.assertEqual((parameters, one.values), ({}, {"a": "600", "b": "3600 (the default)"}))

    def test_a_choice_by_hand_ends_a_contradiction(self) -> None:
        parts = {"a": {"Taints": "nth"}, "b": {"Taints": "spillway"}}
        self.assertEqual([one.parameter for one in together(parts)[1]], ["Taints"])
        self.assertEqual(together(parts, Taints="nth"), ({"Taints": "nth"}, []))

    def test_no_cluster_is_left_out_by_naming_another(self) -> None:
        parameters, (one,) = together({"the section": {}, "b": {"Clusters": "b"}})
        self.assertEqual((parameters, one.values), ({}, {"the section": "every cluster", "b": "b"}))

    def test_different_webhooks_contradict_without_being_shown(self) -> None:
        sources = [source("a", webhookURL="https://x/one"), source("b", webhookURL="https://x/two")]
        parts = [Part(one.name, {"Webhook": "/spillway/webhook"}) for one in sources]
        parameters, (one,) = merged(parts, sources, TEMPLATE, {})
        self.assertEqual((parameters, one.parameter), ({}, "Webhook"))
        self.assertNotIn("https", str(one))

    def test_those_with_the_same_values_are_one(self) -> None:
        found = joined([source("a", **QUEUE), source("b"), source("c", **QUEUE)])
        self.assertEqual([one.clusters for one in found], [("a", "c"), ("b",)])
        with self.assertRaisesRegex(Unusable, "a is named twice"):
            joined([source("a"), source("a", **QUEUE)])


class TheSteps(unittest.TestCase):
    def of(self, *sources: Source) -> str:
        return closing({}, list(sources)).split("To change over")[1]

    def test_end_as_nth_was_run(self) -> None:
        tagged, untagged = source("a", **QUEUE), source("b", **QUEUE, checkTagBeforeDraining=False)
        self.assertIn("6. group by group: Spillway's tag on", self.of(tagged))
        self.assertNotIn("tag on", self.of(untagged))
        self.assertIn("7. uninstall NTH, and remove its rules, queue and hooks", self.of(untagged))
        imds = self.of(source("c"))
        self.assertIn("6. tools/spillway enroll --cluster c --groups", imds)
        self.assertIn("7. a drill, and then uninstall NTH", imds)

    def test_name_the_clusters_of_each_ending_if_there_are_several(self) -> None:
        steps = self.of(source("a", **QUEUE), source("c"))
        self.assertIn("a=a.yaml c=c.yaml && sam deploy", steps)
        self.assertIn("tools/spillway enroll --cluster a c\n", steps)
        self.assertIn("6. a: group by group", steps)
        self.assertIn("8. c: tools/spillway enroll --cluster c --groups", steps)


class APlaceholder(unittest.TestCase):
    def test_placeholder_in_the_address_keeps_the_webhook(self) -> None:
        nth = installation({"webhookURL": "https://hooks.slack.com/${TOKEN}"})
        with self.assertRaisesRegex(Unusable, r"has the placeholder \$\{TOKEN\}: give it by --webhook-url"):
            document(nth)
        self.assertEqual(document(nth, "https://x/y"), {"url": "https://x/y"})
        with self.assertRaisesRegex(Unusable, "webhookHeaders has the placeholder"):
            document(installation({"webhookURL": "https://x/y", "webhookHeaders": '{"a": "${TOKEN}"}'}))


class TheSection(unittest.TestCase):
    """Of samconfig.toml, which the command of a first cluster has written."""

    run_it = test_from_nth_report.TheCommand.run_it

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.samconfig = self.folder / "samconfig.toml"
        for name, wait in (("a", 600), ("b", 600), ("c", 900)):
            (self.folder / f"{name}.yaml").write_text(f"nodeTerminationGracePeriod: {wait}\n")

    def write(self, *arguments: str) -> tuple[int, str]:
        ran = self.run_it("--samconfig", str(self.samconfig), *(one.replace("@", str(self.folder)) for one in arguments))
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
        self.assertEqual(self.write("--live", "--cluster", "c", "--set", "HookMaxWaitS=900", "@/c.yaml"), (0, ""))
        self.assertEqual(self.parameters["Clusters"], "a,c")

    def test_of_every_cluster_is_not_narrowed_to_one(self) -> None:
        self.write("@/a.yaml")
        code, said = self.write("--cluster", "b", "@/b.yaml")
        self.assertEqual(code, 1)
        self.assertIn("for every cluster: every cluster\n", said)
        self.assertEqual(self.write("--cluster", "b", "--set", "Clusters=b", "@/b.yaml")[0], 0)

    def test_file_without_a_cluster_is_refused(self) -> None:
        for arguments, why in (
            (["@/a.yaml", "b=@/b.yaml"], "whose are the values of"),
            (["--cluster", "a", "a=@/a.yaml"], "--cluster is for one file"),
            (["a=@/a.yaml", "a=@/c.yaml"], "a is named twice"),
        ):
            code, said = self.write(*arguments)
            self.assertEqual((code, why in said), (2, True), said)


if __name__ == "__main__":
    unittest.main()
