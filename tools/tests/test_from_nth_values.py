"""What is no use as values, and what is."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

import yaml
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

    def test_unknown_manifest_is_refused_by_kind(self) -> None:
        self.assert_refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nth}\n", "it is the ConfigMap nth, which is not read here")
        self.assert_refused("releases: [{name: nth, values: [{dryRun: true}]}]\n", "it is a helmfile")

    def test_if_broken_names_the_place(self) -> None:
        self.assert_refused("dryRun: [true\nworkers: 1\n", "broken YAML: line 2, column 8")
        self.assert_refused('{"dryRun": true,}', "broken JSON: line 1, column 17")
        self.assert_refused("dryRun: !!python/object/apply:os.getcwd []", "broken YAML: line 1")

    def test_repeated_key_is_refused_with_its_line(self) -> None:
        self.assert_refused("dryRun: true\nworkers: 1\ndryRun: false\n", "line 3: dryRun is in it twice")
        self.assert_refused("image:\n  tag: a\n  tag: b\n", "line 3: tag is in it twice")
        self.assert_refused('{"dryRun": true, "dryRun": false}', "dryRun is in it twice")

    def test_is_another_charts_values(self) -> None:
        self.assert_refused("replicaCount: 2\nimage: {tag: v1}\nservice: {port: 80}\n", "not NTH's values", "replicaCount", "service")
        self.assert_refused("dryrun: true\n", "not NTH's values", "dryrun (is it dryRun?)")

    def test_all_values_of_a_wrong_type_are_reported_at_once(self) -> None:
        self.assert_refused(
            "dryRun: maybe\nworkers: 1.5\nimage: v1\nqueueURL: [a]\ntolerations: {a: b}\nextraEnv: [3]\nwebhookHeaders: {a: b}\n",
            'dryRun has to be true or false, and is a text "maybe"',
            "workers has to be a whole number, and is a number",
            "image has to be a map, and is a text",
            "queueURL has to be a text, and is a list",
            "tolerations has to be a list, and is a map",
            "each entry of extraEnv has to be a map with a name",
            "webhookHeaders has to be a text, and is a map",
        )

    def test_is_a_placeholder_where_the_value_decides(self) -> None:
        self.assert_refused(
            "dryRun: ${DRY}\nworkers: ${N}\nnodeSelector: {pool: '${POOL}'}\nextraEnv: [{name: CORDON_ONLY, value: '${C}'}]\n",
            *(f"{name} has the placeholder ${{{of}}}" for name, of in (("dryRun", "DRY"), ("workers", "N"), ("nodeSelector", "POOL"))),
            "CORDON_ONLY has the placeholder ${C}",
        )
        self.assertEqual(reading("queueURL: https://sqs/${QUEUE}\nworkers: 5\n")["workers"], 5, "it decides nothing here")

    def test_quoted_false_is_refused(self) -> None:
        self.assert_refused('enableSqsTerminationDraining: "false"', "Helm takes for true")

    def test_is_yaml_where_there_is_no_yaml_library(self) -> None:
        script = "import sys; sys.modules['yaml'] = None; from cli.main import main; sys.exit(main(['from-nth']))"
        run = subprocess.run([sys.executable, "-c", script], cwd=TOOLS, input="dryRun: true", capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("pip install pyyaml", run.stderr)
        self.assertIn("helm get values RELEASE --namespace NAMESPACE --output json | tools/spillway from-nth", run.stderr)
        run = subprocess.run([sys.executable, "-c", script], cwd=TOOLS, input='{"dryRun": true}', capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)


class WhatIsRead(unittest.TestCase):
    def test_is_what_helm_get_values_writes(self) -> None:
        for text in ("USER-SUPPLIED VALUES:\nworkers: 5\n", "COMPUTED VALUES:\nworkers: 5\n", "workers: 5\n", '{"workers": 5}', '{"workers": 5.0}'):
            with self.subTest(text=text):
                self.assertEqual(reading(text)["workers"], 5)

    def test_is_a_release_without_values(self) -> None:
        for text in ("null", "USER-SUPPLIED VALUES:\nnull\n", "{}"):
            with self.subTest(text=text):
                self.assertEqual(reading(text).given, [])

    def test_is_the_release_of_nth_among_a_files_documents(self) -> None:
        repository = "kind: HelmRepository\nmetadata: {name: eks}\n"
        release = "kind: HelmRelease\nmetadata: {name: NAME}\nspec: {chart: {spec: {chart: CHART}}, values: {workers: 5}}\n"
        nths = release.replace("CHART", "aws-node-termination-handler").replace("NAME", "nth")
        others = release.replace("CHART", "ingress-nginx").replace("NAME", "ingress")
        for documents in ([repository, nths], ["", nths, repository], [others, nths], [nths, ""]):
            with self.subTest(documents=documents):
                nth = reading("---\n".join(documents))
                self.assertEqual((nth.manifest, nth["workers"]), ("the HelmRelease nth", 5))
        for documents in ([repository, repository], [nths, nths], ["workers: 1\n", "workers: 2\n"]):
            with self.subTest(documents=documents), self.assertRaisesRegex(Unusable, "it has 2 documents"):
                reading("---\n".join(documents))

    def test_is_what_argos_parameters_say_over_its_values(self) -> None:
        parameters = """
          - {name: workers, value: "7"}
          - {name: taintNode, value: "true"}
          - {name: managedTag, value: "5", forceString: true}
          - {name: image.tag, value: v1.25.6}
          - {name: 'nodeSelector.kubernetes\\.io/os', value: linux}
          - {name: "extraEnv[1].name", value: LOG_LEVEL}
          - {name: "extraEnv[1].value", value: debug}"""
        nth = reading(
            "kind: Application\nspec: {source: {helm: {valuesObject: {workers: 5, extraEnv: [{name: WORKERS, value: '6'}]}, "
            f"parameters: {json.dumps(yaml.safe_load(parameters))}}}}}}}\n"
        )
        self.assertEqual([nth["workers"], nth["taintNode"], nth["managedTag"], nth["image.tag"]], [6, True, "5", "v1.25.6"])
        self.assertEqual((nth["nodeSelector"], nth["logLevel"]), ({"kubernetes.io/os": "linux"}, "debug"))
        for wrong, why in (("{a: b}", "no list of maps"), ('[{name: "", value: a}]', "no name"), ('[{name: "a[99999]"}]', "index 99999")):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(Unusable, why):
                reading(f"kind: Application\nspec: {{source: {{helm: {{parameters: {wrong}}}}}}}\n")

    def test_is_what_stands_under_an_umbrella_charts_key(self) -> None:
        nth = reading("nth:\n  dryRun: true\ningress:\n  enabled: true\n")
        self.assertEqual((nth.under, nth["dryRun"], nth.unknown), ("nth", True, []))

    def test_is_taken_as_nth_takes_it(self) -> None:
        nth = reading('dryRun: "T"\ncordonOnly: 1\nworkers: "7"\nheartbeatUntil: 1.728e+05\nmanagedTag: 5\ntaintNode: null\n')
        self.assertEqual([nth["dryRun"], nth["cordonOnly"], nth["workers"]], [True, True, 7])
        self.assertEqual([nth["heartbeatUntil"], nth["managedTag"], nth["taintNode"]], [172_800, "5", False])

    def test_is_the_default_where_it_is_empty(self) -> None:
        self.assertEqual(reading("managedTag: ''\n")["managedTag"], "aws-node-termination-handler/managed")
        self.assertEqual(reading("workers: ''\nextraEnv: [{name: LOG_LEVEL, value: ''}]\n")["logLevel"], "info")

    def test_is_what_extra_env_sets_after_the_value(self) -> None:
        nth = reading("workers: 5\nextraEnv:\n- {name: WORKERS, value: '6'}\n- {name: WORKERS, value: '7'}\n")
        self.assertEqual(nth["workers"], 7)
