"""Parameters and verdicts for NTH's values. Every value gets a line."""

import re
import unittest
from pathlib import Path
from unittest import mock

from from_nth.answers import Answer, Verdict
from from_nth.chart import CHART, COMMON, VARIABLES
from from_nth.installation import installation
from from_nth.parameters import DRAIN_BY_DEFAULT, NOTICES, document, wanted
from from_nth.report import convert
from from_nth.template import parameters, refusal
from from_nth.values import Unusable

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "nth"
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


def verdicts(values: dict) -> dict[str, Answer]:
    return {line.value.split(":")[0]: line.answer for line in convert(installation(values)).lines}


def commands(values: dict) -> list[str]:
    return [command for answer in verdicts(values).values() for command in answer.commands]


class TheTable(unittest.TestCase):
    def test_has_every_value_of_nths_own_chart(self) -> None:
        for key in (SAMPLES / "chart-keys.txt").read_text().split():
            self.assertTrue(key in CHART or key.split(".")[0] in CHART, f"{key} is not known")
        self.assertLessEqual(COMMON, {key.split(".")[0] for key in CHART})

    def test_every_value_ends_with_an_unconditional_line(self) -> None:
        for key, value in (CHART | VARIABLES).items():
            self.assertTrue(value.outcomes and not value.outcomes[-1].conditions, key)

    def test_every_value_gets_a_line(self) -> None:
        everything = {key: value.default for key, value in CHART.items() if "." not in key and key != "extraEnv"}
        everything |= {"image": {"tag": "v1"}, "rbac": {"create": True}, "frobnicate": 1}
        everything["extraEnv"] = [{"name": name, "value": ""} for name in (*VARIABLES, "AWS_PROFILE", "FROBNICATE")]
        lines = verdicts(everything)
        names = {name for name in everything if name not in ("extraEnv", "image", "rbac")} | {"image.tag", "rbac.create"}
        self.assertEqual((names | {f"extraEnv {entry['name']}" for entry in everything["extraEnv"]}) - lines.keys(), set())
        unknown = [name for name, answer in lines.items() if answer.verdict is Verdict.UNKNOWN]
        self.assertEqual(unknown, ["frobnicate", "extraEnv FROBNICATE"])

    def test_needed_default_of_nth_gets_a_line(self) -> None:
        self.assertEqual(list(verdicts(TAGGED)), ["enableSqsTerminationDraining", "checkTagBeforeDraining", "without --live"])


class Values(unittest.TestCase):
    def test_lead_to_parameters(self) -> None:
        known = parameters()
        for values, expected in PARAMETERS:
            with self.subTest(values):
                self.assertEqual(wanted(installation(values)), expected)
                self.assertEqual([why for name, value in expected.items() if (why := refusal(value, known[name]))], [])

    def test_get_verdicts(self) -> None:
        for values, names, verdict in VERDICTS:
            with self.subTest(values):
                found = verdicts(values)
                self.assertEqual({found[name].verdict for name in names}, {verdict})

    def test_line_names_what_decides_instead_of_the_value(self) -> None:
        for values, given, part in (
            ({"enableSpotInterruptionDraining": True}, "enableSpotInterruptionDraining: true", "DrainOn (default)"),
            ({**QUEUE, "completeLifecycleActionDelaySeconds": 60}, "completeLifecycleActionDelaySeconds: 60", "set LoadBalancers=wait"),
            ({**QUEUE, "enabled": False}, "enabled: false", "that chart installs no NTH"),
            ({**TAGGED, "checkASGTagBeforeDraining": False}, "checkASGTagBeforeDraining: false", "Depends on the chart's version"),
        ):
            (line,) = (line for line in convert(installation(values)).lines if line.value == given)
            self.assertIn(part, f"{line.answer} {line.parameters}")

    def test_option_wins_over_the_values(self) -> None:
        for cluster, live, by_hand, expected in (
            ("prod", False, {}, {**EVERYTHING, "Clusters": "prod", "DryRun": "true"}),
            ("", True, {}, {**EVERYTHING, "DryRun": "false"}),
            ("", False, {"DrainOn": "spot"}, {"DrainOn": "spot", "DryRun": "true"}),
        ):
            self.assertEqual(convert(installation({**QUEUE, "dryRun": not live}), cluster, live, by_hand).parameters, expected)

    def test_secret_is_shown_not_even_under_a_misspelt_name(self) -> None:
        secret = "s3cr3t"
        values = {**QUEUE, "webhookURL": f"https://x/{secret}", "webhookHeaders": f'{{"A":"{secret}"}}', "webhookProxy": f"http://u:{secret}@p"}
        values |= {"webhookUrl": f"https://x/{secret}", "awsAccessKeyID": secret, "awsSecretAccessKey": secret}
        names = ("WEBHOOK_URL", "WEBHOOK_UR", "HTTPS_PROXY", "AWS_SESSION_TOKEN", "MINE")
        values["extraEnv"] = [{"name": name, "value": secret} for name in names]
        self.assertNotIn(secret, str(convert(installation(values)).lines))


class Webhook(unittest.TestCase):
    def test_values_become_one_document(self) -> None:
        expected = {"url": "https://x/s3cr3t", "headers": {"a": "b"}, "proxy": "http://p", "template": WEBHOOK["webhookTemplate"]}
        self.assertEqual(document(installation(WEBHOOK)), expected)
        (command,) = commands(WEBHOOK)
        self.assertRegex(command, r'^aws ssm put-parameter .* --name /spillway/webhook .*"\$\(tools/spillway from-nth --webhook FILE\)"')

    def test_value_elsewhere_is_handed_in(self) -> None:
        config_map = {"webhookTemplateConfigMapName": "nth", "webhookTemplateConfigMapKey": "slack.tmpl"}
        for values, option, given in (
            ({"webhookURLSecretName": "nth-slack", "webhookURL": "https://x"}, '--webhook-url "$(kubectl get secret nth-slack ', {"url": "https://y"}),
            ({"extraEnv": IN_SECRET}, '--webhook-url "$(kubectl get secret nth-slack ', {"url": "https://y"}),
            ({"webhookURL": "https://x/${TOKEN}"}, '--webhook-url "$URL"', {"url": "https://y"}),
            ({"webhookURL": "https://y", **config_map}, '--webhook-template "$(kubectl get configmap nth ', {"template": "u"}),
        ):
            (command,) = commands(values)
            self.assertIn(option, command)
            with self.assertRaisesRegex(Unusable, option.split()[0]):
                document(installation(values))
            self.assertEqual(document(installation(values), **given), {"url": "https://y", **given})
        (command,) = commands({"webhookURLSecretName": "nth-slack", **config_map})
        self.assertRegex(command, "--webhook-url .* --webhook-template ")

    def test_useless_document_is_refused(self) -> None:
        for values, why in (
            ({"webhookURL": "http://x"}, "begins with https://"),
            *(({"webhookURL": "https://x", "webhookHeaders": headers}, "webhookHeaders") for headers in ("{", '["a"]', '{"a": 1}', '{"a": "${T}"}')),
        ):
            with self.assertRaisesRegex(Unusable, why):
                document(installation(values))

    def test_template_works_unchanged_only_if_it_was_rendered(self) -> None:
        failure = "at line 1, column 3: there is no field Kid"
        for failed, verdict, words in (("", Verdict.SAME, "unchanged"), (failure, Verdict.NO_COUNTERPART, failure), (None, Verdict.DIFFERS, "not been rendered")):
            program = lambda: None if failed is None else "it"  # noqa: B023, E731
            with mock.patch.multiple("message_preview.command", program=program, rendered=lambda *_: ("", failed)):  # noqa: B023
                answer = verdicts(WEBHOOK)["webhookTemplate"]
            self.assertIs(answer.verdict, verdict)
            self.assertIn(words, answer.why)


class ThisVersion(unittest.TestCase):
    def test_has_the_assumed_defaults(self) -> None:
        known = parameters()
        self.assertEqual((known["DrainOn"]["Default"], known["CordonOn"]["Default"]), (",".join(DRAIN_BY_DEFAULT), "off"))

    def test_answers_name_existing_parameters(self) -> None:
        answers = "".join((ROOT / "tools/from_nth" / name).read_text() for name in ("answers.py", "chart.txt"))
        named = set(re.findall(r"\b([A-Z][a-z]+[A-Za-z]*)=[a-z(/{]", answers))
        named |= set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)(?:=[^`]*)?`", (ROOT / "docs/from-nth.md").read_text()))
        self.assertGreaterEqual(len(named), 8)
        self.assertEqual(named - parameters().keys(), set())
