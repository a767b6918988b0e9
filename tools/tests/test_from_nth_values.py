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
RELEASE = "kind: HelmRelease\nmetadata: {name: NAME}\nspec: {chart: {spec: {chart: CHART}}, values: {workers: 5}}\n"


def reading(text: str) -> Installation:
    return installation(read(text))


def manifest(kind: str, spec: object) -> str:
    return json.dumps({"kind": kind, "metadata": {"name": "nth"}, "spec": spec})


class WhatIsNoUse(unittest.TestCase):
    def test_unusable_text_is_refused_with_its_reason(self) -> None:
        helms = {"valueFiles": ["a.yaml"]}, {"valuesObject": []}
        for text, why in (
            ("", "it is empty"),
            ("# only this\n", "it is empty"),
            ("USER-SUPPLIED VALUES:\n", "it is empty"),
            ("- dryRun\n", "it is a list, where Helm values are a map"),
            ('["dryRun"]', "it is a list, where Helm values are a map"),
            ("dryRun: &one {b: *one}", "Circular"),
            ("[" * 100_000, "nested too deeply"),
            ("dryRun: [true\nworkers: 1\n", "line 2, column 8"),
            ('{"dryRun": true,}', "line 1 column 17"),
            ("dryRun: !!python/object/apply:os.getcwd []", "line 1, column 9"),
            ("dryRun: true\nworkers: 1\ndryRun: false\n", "in the map from line 1 on, dryRun is in it twice"),
            ("image:\n  tag: a\n  tag: b\n", "in the map from line 2 on, tag is in it twice"),
            ('{"dryRun": true, "dryRun": false}', "dryRun is in it twice"),
            ("dryrun: true\nreplicaCount: 2\n", "not NTH's values: none is NTH's own, and its chart does not know dryrun (is it dryRun?), replicaCount"),
            ('enableSqsTerminationDraining: "false"', "Helm takes for true"),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nth}\n", "it is the ConfigMap nth, which is not read here"),
            (manifest("HelmRelease", {"valuesFrom": [{"kind": "ConfigMap"}]}), "elsewhere (valuesFrom)"),
            (manifest("HelmRelease", {"values": ["a"]}), "spec.values is a list"),
            *((manifest("Application", {"source": {"helm": helm}}), why) for helm, why in zip(helms, ("elsewhere (valueFiles)", "helm.values is a list"))),
            ("---\n".join([RELEASE, RELEASE]), "it has 2 documents"),
        ):
            with self.subTest(text=text[:60]), self.assertRaises(Unusable) as refused:
                reading(text)
            self.assertIn(why, str(refused.exception))

    def test_all_values_of_a_wrong_type_are_reported_at_once(self) -> None:
        with self.assertRaises(Unusable) as refused:
            reading(
                "dryRun: maybe\nworkers: 1.5\nimage: v1\nqueueURL: [a]\ntolerations: {a: b}\ncordonOnly: ${C}\nnodeSelector: {pool: '${POOL}'}\n"
                "extraEnv: [3, {name: TAINT_NODE, value: '${T}'}]\n"
            )
        for part in (
            'dryRun has to be true or false, and is a text "maybe"',
            "workers has to be a whole number, and is a number",
            "image has to be a map, and is a text",
            "queueURL has to be a text, and is a list",
            "tolerations has to be a list, and is a map",
            "cordonOnly has the placeholder ${C}",
            "nodeSelector has the placeholder ${POOL}",
            "each entry of extraEnv has to be a map with a name",
            "TAINT_NODE has the placeholder ${T}",
        ):
            self.assertIn(part, str(refused.exception))

    def test_yaml_without_a_library_has_a_remedy(self) -> None:
        script = "import sys; sys.modules['yaml'] = None; from cli.main import main; sys.exit(main(['from-nth']))"
        for given, code, said in (("dryRun: true", 2, "--output json | tools/spillway from-nth"), ('{"dryRun": true}', 0, "")):
            run = subprocess.run([sys.executable, "-c", script], cwd=TOOLS, input=given, capture_output=True, text=True)
            self.assertEqual((run.returncode, said in run.stderr), (code, True), run.stderr)


class WhatIsRead(unittest.TestCase):
    def test_output_of_helm_get_values_is_read(self) -> None:
        for text in ("USER-SUPPLIED VALUES:\nworkers: 5\n", "COMPUTED VALUES:\nworkers: 5\n", '{"workers": 5.0}'):
            self.assertEqual(reading(text)["workers"], 5, text)
        for text in ("null", "USER-SUPPLIED VALUES:\nnull\n", "{}"):
            self.assertEqual(reading(text).given, [], text)

    def test_manifests_of_flux_argo_and_k3s_are_unwrapped(self) -> None:
        inner, text = {"workers": 5}, "workers: 5\n"
        for kind, spec in (
            ("HelmRelease", {"values": inner}),
            ("Application", {"source": {"chart": "aws-node-termination-handler", "helm": {"valuesObject": inner}}}),
            ("Application", {"source": {"helm": {"values": text}}}),
            ("Application", {"sources": [{}, {"helm": {"valuesObject": inner}}]}),
            ("ApplicationSet", {"template": {"spec": {"source": {"helm": {"valuesObject": inner}}}}}),
            ("HelmChart", {"valuesContent": text}),
        ):
            nth = reading(manifest(kind, spec))
            self.assertEqual((nth.manifest, nth["workers"]), (f"the {kind} nth", 5))

    def test_release_of_nth_is_found_among_documents(self) -> None:
        repository = "kind: HelmRepository\nmetadata: {name: eks}\n"
        nths = RELEASE.replace("CHART", "aws-node-termination-handler").replace("NAME", "nth")
        for documents in ([repository, nths], ["", nths, repository], [RELEASE, nths], [nths, ""]):
            nth = reading("---\n".join(documents))
            self.assertEqual((nth.manifest, nth["workers"]), ("the HelmRelease nth", 5), documents)

    def test_argo_parameters_win_over_values(self) -> None:
        parameters = """
          - {name: workers, value: "7"}
          - {name: taintNode, value: "true"}
          - {name: managedTag, value: "true", forceString: true}
          - {name: image.tag, value: v1.25.6}
          - {name: 'nodeSelector.kubernetes\\.io/os', value: linux}
          - {name: "extraEnv[1].name", value: LOG_LEVEL}
          - {name: "extraEnv[1].value", value: debug}"""
        values = {"workers": 5, "extraEnv": [{"name": "WORKERS", "value": "6"}]}
        nth = reading(manifest("Application", {"source": {"helm": {"valuesObject": values, "parameters": yaml.safe_load(parameters)}}}))
        self.assertEqual([nth["workers"], nth["taintNode"], nth["managedTag"], nth["image.tag"]], [6, True, "true", "v1.25.6"])
        self.assertEqual((nth["nodeSelector"], nth["logLevel"]), ({"kubernetes.io/os": "linux"}, "debug"))

    def test_values_under_an_umbrella_charts_key_are_found(self) -> None:
        nth = reading("nth:\n  dryRun: true\ningress:\n  enabled: true\n")
        self.assertEqual((nth.under, nth["dryRun"], len(nth.given)), ("nth", True, 1))

    def test_value_is_taken_as_nth_takes_it(self) -> None:
        for text, key, value in (
            ('dryRun: "T"', "dryRun", True),
            ("cordonOnly: 1", "cordonOnly", True),
            ('workers: "7"', "workers", 7),
            ("heartbeatUntil: 1.728e+05", "heartbeatUntil", 172_800),
            ("managedTag: 5", "managedTag", "5"),
            ("taintNode: null", "taintNode", False),
            ("managedTag: ''", "managedTag", "aws-node-termination-handler/managed"),
            ("workers: 5\nextraEnv: [{name: LOG_LEVEL, value: ''}]", "logLevel", "info"),
            ("workers: 5\nextraEnv: [{name: WORKERS, value: '6'}, {name: WORKERS, value: '7'}]", "workers", 7),
            ("workers: 5\nextraEnv: [{name: ENABLE_SQS_TERMINATION_DRAINING, value: 'false'}]", "enableSqsTerminationDraining", False),
            # A placeholder that decides nothing here.
            ("queueURL: https://sqs/${QUEUE}", "queueURL", "https://sqs/${QUEUE}"),
        ):
            self.assertEqual(reading(text)[key], value, text)
