"""Parameters and verdicts for NTH's values. Every value gets a line."""

import re
import unittest
from pathlib import Path
from unittest import mock

from from_nth.answers import Verdict
from from_nth.chart import CHART, COMMON, FORMER, VARIABLES
from from_nth.installation import installation
from from_nth.parameters import DRAIN_BY_DEFAULT, NOTICES, document, wanted
from from_nth.report import Conversion, convert
from from_nth.template import Parameter, parameters
from from_nth.values import Unusable

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "nth"
# Every parameter that NTH's values can lead to, and those that answers and docs/from-nth.md name besides.
OURS = frozenset("DrainOn CordonOn HookMaxWaitS ManagedTag NodeSelector Taints LoadBalancers DryRun NodeEvents Webhook".split())
TO_COME = frozenset("Launch Clusters MaintenanceLeadS ManagedNodeGroups Karpenter HooksWithoutNode Hooks".split())
# A version that has them all, and takes everything.
LATER = {name: Parameter() for name in OURS | {"Clusters"}}
QUEUE = {"enableSqsTerminationDraining": True, "checkTagBeforeDraining": False}
TAGGED = {"enableSqsTerminationDraining": True}
ALL = ",".join(NOTICES)
EVERYTHING = {"DrainOn": ALL}
WEBHOOK = {"webhookURL": "https://x/s3cr3t", "webhookHeaders": '{"a":"b"}', "webhookProxy": "http://p", "webhookTemplate": '{"text":"say \\"{{ .Kind }}\\""}'}
IN_SECRET = [{"name": "WEBHOOK_URL", "valueFrom": {"secretKeyRef": {"name": "nth-slack", "key": "url"}}}]
TWO_SELECTORS = {"targetNodeOs": "linux windows", "windowsNodeSelector": {"a": "1"}, "linuxNodeSelector": {"b": "2"}}


def effect(value: str) -> dict:
    return {"taintNode": True, "extraEnv": [{"name": "TAINT_EFFECT", "value": value}]}


# NTH's values and the parameters that they lead to.
PARAMETERS: list[tuple[dict, dict[str, str]]] = [
    # Notices: in queue mode NTH ignores its switches; in IMDS mode each switch is a notice of its own.
    ({}, {}),
    (QUEUE, EVERYTHING),
    ({**QUEUE, "enableRebalanceDraining": False, "enableSpotInterruptionDraining": False}, EVERYTHING),
    ({"enableSpotInterruptionDraining": False}, {"DrainOn": "capacity,maintenance,state-change,terminate"}),
    ({"enableScheduledEventDraining": False}, {"DrainOn": "spot,capacity,state-change,terminate"}),
    ({"enableASGLifecycleDraining": False}, {"DrainOn": "spot,capacity,maintenance,state-change"}),
    ({"enableRebalanceMonitoring": True}, {"CordonOn": "rebalance"}),
    ({"enableRebalanceMonitoring": True, "enableRebalanceDraining": True}, EVERYTHING),
    ({**QUEUE, "cordonOnly": True}, {"DrainOn": "off", "CordonOn": ALL}),
    ({"cordonOnly": True, "enableSpotInterruptionDraining": False}, {"DrainOn": "off", "CordonOn": "capacity,maintenance,state-change,terminate"}),
    # Nodes: a tag of Spillway's own, because with NTH's both would act on the same nodes.
    ({**TAGGED, "managedTag": "nth/prod"}, {**EVERYTHING, "ManagedTag": "spillway/managed"}),
    ({**QUEUE, "managedTag": "nth/prod"}, EVERYTHING),
    ({"managedTag": "nth/prod"}, {}),
    ({"daemonsetNodeSelector": {"a": "1"}}, {"NodeSelector": "a=1"}),
    ({"daemonsetNodeSelector": {"a": "1"}, "nodeSelector": {"b": "2", "c": "3"}}, {"NodeSelector": "b=2,c=3"}),
    ({"nodeSelector": {"b": "2"}, "linuxNodeSelector": {"d": "4"}}, {"NodeSelector": "d=4"}),
    ({"targetNodeOs": "windows", "nodeSelector": {"b": "2"}}, {"NodeSelector": "kubernetes.io/os=windows,b=2"}),
    ({"targetNodeOs": "linux windows", "nodeSelector": {"b": "2"}}, {"NodeSelector": "b=2"}),
    (TWO_SELECTORS, {}),
    ({**QUEUE, "nodeSelector": {"a": "1"}}, EVERYTHING),
    # Hooks: the longest wait is the shorter of NTH's two.
    *(
        ({**QUEUE, **given}, {**EVERYTHING, **({"HookMaxWaitS": held} if held else {})})
        for given, held in (
            ({"nodeTerminationGracePeriod": 120}, None),
            ({"nodeTerminationGracePeriod": 600}, "600"),
            ({"nodeTerminationGracePeriod": 999_999}, "172800"),
            ({"heartbeatInterval": 60}, "172800"),
            ({"heartbeatInterval": 60, "heartbeatUntil": 900}, "900"),
            ({"heartbeatInterval": 60, "heartbeatUntil": 900, "nodeTerminationGracePeriod": 600}, "600"),
            ({"heartbeatUntil": 900}, None),
        )
    ),
    # Marks, and messages.
    ({"taintNode": True, "enableOutOfServiceTaint": True}, {"Taints": "nth,out-of-service"}),
    ({"excludeFromLoadBalancers": True, "emitKubernetesEvents": True, "dryRun": True}, {"LoadBalancers": "exclude", "NodeEvents": "true", "DryRun": "true"}),
    (WEBHOOK, {"Webhook": "/spillway/webhook"}),
    ({"webhookURLSecretName": "nth-slack", "webhookURL": "https://x"}, {"Webhook": "/spillway/webhook"}),
    ({"extraEnv": IN_SECRET}, {"Webhook": "/spillway/webhook"}),
    ({"webhookTemplate": "x", "webhookHeaders": "{}"}, {}),
    ({"webhookURL": "http://x"}, {}),
]
SOME = {"linuxAffinity": {"nodeAffinity": {}}, "tolerations": [{"key": "a"}], "daemonsetTolerations": []}
EVERYWHERE = {"nodeSelector": {}, "affinity": {}, "tolerations": [], "daemonsetTolerations": [{"operator": "Exists"}]}
# NTH's values, some lines of the report, and their verdict.
VERDICTS: list[tuple[dict, tuple[str, ...], Verdict]] = [
    (EVERYWHERE, tuple(EVERYWHERE), Verdict.SAME),
    (SOME, tuple(SOME), Verdict.NO_COUNTERPART),
    (QUEUE | SOME, tuple(SOME), Verdict.NOT_NEEDED),
    (TWO_SELECTORS, ("windowsNodeSelector",), Verdict.NO_COUNTERPART),
    (effect("NoSchedule"), ("extraEnv TAINT_EFFECT",), Verdict.SAME),
    (effect("NoExecute"), ("extraEnv TAINT_EFFECT",), Verdict.NO_COUNTERPART),
    (effect("noexecute"), ("extraEnv TAINT_EFFECT",), Verdict.DIFFERS),
    ({"webhookURL": "http://x"}, ("webhookURL",), Verdict.NO_COUNTERPART),
    *(({"webhookURL": "https://x", "webhookHeaders": headers}, ("webhookHeaders",), Verdict.NO_COUNTERPART) for headers in ("{", '["a"]', '{"a": 1}')),
]


def converted(values: dict, template: dict[str, Parameter] = LATER, cluster: str | None = None) -> Conversion:
    return convert(installation(values), template, cluster)


def verdicts(conversion: Conversion) -> dict[str, Verdict]:
    return {line.value.split(":")[0]: line.answer.verdict for line in conversion.lines}


def commands(values: dict) -> list[str]:
    return [command for line in converted(values).lines for command in line.answer.commands]


class TheTable(unittest.TestCase):
    def test_has_every_value_of_nths_own_chart(self) -> None:
        for key in (SAMPLES / "chart-keys.txt").read_text().split():
            self.assertTrue(key in CHART or key.split(".")[0] in CHART, f"{key} is not known")

    def test_every_value_ends_with_an_unconditional_line(self) -> None:
        for key, value in (CHART | VARIABLES).items():
            self.assertTrue(value.outcomes and not value.outcomes[-1].conditions, key)

    def test_values_of_older_charts_lead_to_todays(self) -> None:
        self.assertLessEqual(set(FORMER.values()), set(CHART))
        self.assertLessEqual(COMMON, {key.split(".")[0] for key in CHART})

    def test_every_value_gets_a_line(self) -> None:
        everything = {key: value.default for key, value in CHART.items() if "." not in key and key != "extraEnv"}
        everything |= {"image": {"tag": "v1"}, "rbac": {"create": True}, "frobnicate": 1}
        everything["extraEnv"] = [{"name": name, "value": ""} for name in (*VARIABLES, "AWS_PROFILE", "FROBNICATE")]
        lines = verdicts(converted(everything))
        names = {name for name in everything if name not in ("extraEnv", "image", "rbac")} | {"image.tag", "rbac.create"}
        self.assertEqual((names | {f"extraEnv {entry['name']}" for entry in everything["extraEnv"]}) - lines.keys(), set())
        unknown = [name for name, verdict in lines.items() if verdict is Verdict.UNKNOWN]
        self.assertEqual(unknown, ["frobnicate", "extraEnv FROBNICATE"])

    def test_needed_default_of_nth_gets_a_line(self) -> None:
        lines = [line.value for line in converted(TAGGED).lines]
        self.assertEqual(lines, ["enableSqsTerminationDraining: true", "checkTagBeforeDraining: true (the chart's default)", "without --live"])


class Values(unittest.TestCase):
    def test_lead_to_parameters(self) -> None:
        for values, expected in PARAMETERS:
            with self.subTest(values):
                self.assertEqual(wanted(installation(values)), expected)

    def test_get_verdicts(self) -> None:
        for values, names, verdict in VERDICTS:
            with self.subTest(values):
                found = verdicts(converted(values))
                self.assertEqual({found[name] for name in names}, {verdict})

    def test_secret_is_shown_not_even_under_a_misspelt_name(self) -> None:
        secret = "s3cr3t"
        values = {**QUEUE, "webhookURL": f"https://x/{secret}", "webhookHeaders": f'{{"A":"{secret}"}}', "webhookProxy": f"http://u:{secret}@p"}
        values |= {"webhookUrl": f"https://x/{secret}", "awsAccessKeyID": secret, "awsSecretAccessKey": secret}
        names = ("WEBHOOK_URL", "WEBHOOK_UR", "HTTPS_PROXY", "AWS_SESSION_TOKEN", "MINE")
        values["extraEnv"] = [{"name": name, "value": secret} for name in names]
        self.assertNotIn(secret, str(converted(values).lines))


class Webhook(unittest.TestCase):
    def test_values_become_one_document(self) -> None:
        expected = {"url": "https://x/s3cr3t", "headers": {"a": "b"}, "proxy": "http://p", "template": WEBHOOK["webhookTemplate"]}
        self.assertEqual(document(installation(WEBHOOK)), expected)
        (command,) = commands(WEBHOOK)
        self.assertRegex(command, r'^aws ssm put-parameter .* --name /spillway/webhook .*"\$\(tools/spillway from-nth --webhook FILE\)"')
        for headers in ("{", '["a"]', '{"a": 1}'):
            with self.assertRaisesRegex(Unusable, "webhookHeaders"):
                document(installation({"webhookURL": "https://x", "webhookHeaders": headers}))

    def test_secret_of_the_cluster_is_handed_in(self) -> None:
        for values in ({"webhookURLSecretName": "nth-slack", "webhookURL": "https://x"}, {"extraEnv": IN_SECRET}):
            (command,) = commands(values)
            self.assertIn(' --webhook --webhook-url "$(kubectl get secret nth-slack ', command)
            with self.assertRaisesRegex(Unusable, "--webhook-url"):
                document(installation(values))
            self.assertEqual(document(installation(values), "https://y"), {"url": "https://y"})

    def test_config_map_template_wins_with_both_names(self) -> None:
        both = {"webhookTemplateConfigMapName": "nth", "webhookTemplateConfigMapKey": "slack.tmpl"}
        values = {"webhookURL": "https://x", "webhookTemplate": "t"}
        with self.assertRaisesRegex(Unusable, "--webhook-template"):
            document(installation(values | both))
        self.assertEqual(document(installation(values | both), template="u")["template"], "u")
        self.assertEqual(document(installation({**values, "webhookTemplateConfigMapName": "nth"}))["template"], "t")

    def test_template_works_unchanged_only_if_it_was_rendered(self) -> None:
        failure = "at line 1, column 3: there is no field Kid"
        for failed, verdict, words in (("", Verdict.SAME, "unchanged"), (failure, Verdict.NO_COUNTERPART, failure), (None, Verdict.DIFFERS, "not been rendered")):
            program = lambda: None if failed is None else "it"  # noqa: B023, E731
            with mock.patch.multiple("message_preview.command", program=program, rendered=lambda *_: ("", failed)):  # noqa: B023
                (answer,) = (line.answer for line in converted(WEBHOOK).lines if line.value.startswith("webhookTemplate:"))
            self.assertIs(answer.verdict, verdict)
            self.assertIn(words, answer.why)

    def test_form_without_a_template_is_named(self) -> None:
        lines = {line.value.split(":")[0]: line.answer.why for line in converted({"webhookURL": "https://chat.example/x"}).lines}
        self.assertIn("any other host {\"text\": …}", lines["webhookURL"])


class Manifests(unittest.TestCase):
    def test_of_flux_argo_and_k3s_are_unwrapped(self) -> None:
        inner, text = {"taintNode": True, "logLevel": "debug"}, "taintNode: true\nlogLevel: debug\n"
        for kind, spec in (
            ("HelmRelease", {"values": inner}),
            ("Application", {"source": {"chart": "aws-node-termination-handler", "helm": {"valuesObject": inner}}}),
            ("Application", {"source": {"helm": {"values": text}}}),
            ("Application", {"sources": [{}, {"helm": {"valuesObject": inner}}]}),
            ("ApplicationSet", {"template": {"spec": {"source": {"helm": {"valuesObject": inner}}}}}),
            ("HelmChart", {"valuesContent": text}),
        ):
            conversion = converted({"kind": kind, "metadata": {"name": "nth"}, "spec": spec})
            self.assertEqual(conversion.parameters, {"Taints": "nth", "DryRun": "true"})
            self.assertIn(f"in the {kind} nth", conversion.headline)

    def test_values_elsewhere_are_refused(self) -> None:
        helms = ({"valueFiles": ["a.yaml"]}, {"parameters": [{"name": "a", "value": "b"}]}, {"valuesObject": []})
        releases = ({"valuesFrom": [{"kind": "ConfigMap"}]}, {"values": ["a"]})
        for kind, spec in (*(("HelmRelease", spec) for spec in releases), *(("Application", {"source": {"helm": helm}}) for helm in helms)):
            with self.subTest(spec=spec), self.assertRaises(Unusable):
                installation({"kind": kind, "spec": spec})


class AVersion(unittest.TestCase):
    def test_missing_or_refused_parameter_is_reported(self) -> None:
        without = {name: parameter for name, parameter in LATER.items() if name != "Taints"}
        narrow = LATER | {"CordonOn": Parameter(allowed=("", "rebalance"))}
        for given, template, left, name, words in (
            ({"taintNode": True}, without, {"DryRun": "true"}, "taintNode", "has no Taints yet"),
            ({"cordonOnly": True}, narrow, {"DrainOn": "off", "DryRun": "true"}, "cordonOnly", "does not take this for CordonOn (it takes  or rebalance)"),
        ):
            conversion = converted(given, template)
            (answer,) = (line.answer for line in conversion.lines if line.value == f"{name}: true")
            self.assertEqual((conversion.parameters, answer.verdict), (left, Verdict.NOT_IN_THIS_VERSION))
            self.assertIn(words, answer.why)

    def test_cluster_dry_run_and_parameters_by_hand_are_added(self) -> None:
        self.assertEqual(converted({"dryRun": False}, cluster="prod").parameters, {"Clusters": "prod", "DryRun": "true"})
        by_hand = convert(installation(QUEUE), LATER, by_hand={"DrainOn": "spot"})
        self.assertEqual(by_hand.parameters, {"DrainOn": "spot", "DryRun": "true"})
        for nths in (False, True):
            self.assertEqual(convert(installation({"dryRun": nths}), LATER, live=True).parameters, {"DryRun": "false"})


class ThisVersion(unittest.TestCase):
    TEMPLATE = parameters()

    def test_has_the_assumed_defaults(self) -> None:
        self.assertEqual(self.TEMPLATE["DrainOn"].default, ",".join(DRAIN_BY_DEFAULT))
        self.assertEqual(self.TEMPLATE["CordonOn"].default, "off")

    def test_takes_every_parameter_of_the_table(self) -> None:
        given = [(name, value) for _, expected in PARAMETERS for name, value in expected.items()]
        self.assertEqual({name for name, _ in given}, OURS)
        for name, value in given:
            self.assertIsNone(self.TEMPLATE[name].refuses(value), name)

    def test_answers_name_existing_parameters(self) -> None:
        answers = "".join((ROOT / "tools/from_nth" / name).read_text() for name in ("answers.py", "chart.txt"))
        named = set(re.findall(r"\b([A-Z][a-z]+[A-Za-z]*)=[a-z(/{]", answers))
        named |= set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)(?:=[^`]*)?`", (ROOT / "docs/from-nth.md").read_text()))
        self.assertGreaterEqual(len(named), 8)
        others = {"NotificationTargetARN", "CompleteLifecycleAction"}
        self.assertEqual(named - self.TEMPLATE.keys() - OURS - TO_COME - others, set())


if __name__ == "__main__":
    unittest.main()
