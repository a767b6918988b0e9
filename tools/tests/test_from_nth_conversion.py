"""What Spillway is told for what NTH was told, and that nothing is passed over in silence."""

import re
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from from_nth.answers import Answer, Verdict
from from_nth.chart import CHART, COMMON, FORMER, VARIABLES
from from_nth.installation import installation
from from_nth.parameters import DRAIN_BY_DEFAULT, NOTICES, document, wanted
from from_nth.report import Conversion, convert
from from_nth.template import Parameter, parameters
from from_nth.values import Unusable

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "nth"
# Every parameter that NTH's values can lead to.
OURS = frozenset(
    "DrainOn CordonOn HookMaxWaitS ManagedTag NodeSelector Taints LoadBalancers DryRun NodeEvents Webhook".split()
)
# Those that its answers and docs/from-nth.md name besides.
TO_COME = frozenset(
    "Launch Clusters MaintenanceLeadS ManagedNodeGroups Karpenter HooksWithoutNode Hooks".split()
)
# A version that has them all, and takes everything.
LATER = {name: Parameter() for name in OURS | {"Clusters"}}
QUEUE = {"enableSqsTerminationDraining": True, "checkTagBeforeDraining": False}


def told(**values: object) -> dict[str, str]:
    return wanted(installation(values))


def converted(values: dict, template: dict[str, Parameter] = LATER, cluster: str | None = None) -> Conversion:
    return convert(installation(values), template, cluster)


def verdicts(conversion: Conversion) -> dict[str, Verdict]:
    return {line.value.split(":")[0]: line.answer.verdict for line in conversion.lines}


class TheChart(unittest.TestCase):
    def test_has_every_value_that_nths_own_has(self) -> None:
        for key in (SAMPLES / "chart-keys.txt").read_text().split():
            with self.subTest(key=key):
                self.assertTrue(key in CHART or key.split(".")[0] in CHART, f"{key} is not known")

    def test_every_value_and_variable_has_a_last_line_without_a_condition(self) -> None:
        for key, value in (CHART | VARIABLES).items():
            self.assertTrue(value.outcomes and not value.outcomes[-1].conditions, key)

    def test_values_of_older_charts_lead_to_todays(self) -> None:
        self.assertLessEqual(set(FORMER.values()), set(CHART))
        self.assertLessEqual(COMMON, {key.split(".")[0] for key in CHART})


class Nothing(unittest.TestCase):
    def test_is_passed_over_in_silence(self) -> None:
        everything = {key: value.default for key, value in CHART.items() if "." not in key and key != "extraEnv"}
        everything |= {"image": {"tag": "v1"}, "rbac": {"create": True}, "frobnicate": 1}
        everything["extraEnv"] = [{"name": name, "value": ""} for name in (*VARIABLES, "AWS_PROFILE", "FROBNICATE")]
        lines = verdicts(converted(everything))
        names = {name for name in everything if name not in ("extraEnv", "image", "rbac")} | {
            "image.tag",
            "rbac.create",
        }
        names |= {f"extraEnv {entry['name']}" for entry in everything["extraEnv"]}
        self.assertEqual(names - lines.keys(), set())
        self.assertEqual(
            [name for name, verdict in lines.items() if verdict is Verdict.UNKNOWN],
            ["frobnicate", "extraEnv FROBNICATE"],
        )

    def test_secret_is_shown_not_even_under_a_misspelt_name(self) -> None:
        secret = "s3cr3t"
        values = {
            **QUEUE,
            "webhookURL": f"https://x/{secret}",
            "webhookHeaders": f'{{"A":"{secret}"}}',
            "webhookProxy": f"http://u:{secret}@p",
        }
        values |= {"webhookUrl": f"https://x/{secret}", "awsAccessKeyID": secret, "awsSecretAccessKey": secret}
        values["extraEnv"] = [
            {"name": name, "value": secret}
            for name in ("WEBHOOK_URL", "WEBHOOK_UR", "HTTPS_PROXY", "AWS_SESSION_TOKEN", "MINE")
        ]
        self.assertNotIn(secret, str(converted(values).lines))


class Notices(unittest.TestCase):
    def test_queue_mode_ignores_the_rebalance_switches(self) -> None:
        everything = {"DrainOn": "spot,capacity,maintenance,state-change,terminate,rebalance"}
        self.assertEqual(told(**QUEUE), everything)
        self.assertEqual(told(**QUEUE, enableRebalanceDraining=False, enableSpotInterruptionDraining=False), everything)

    def test_in_imds_mode_each_switch_is_a_notice_of_its_own(self) -> None:
        self.assertEqual(told(), {})
        for switch, notice in (
            ("enableSpotInterruptionDraining", "spot"),
            ("enableScheduledEventDraining", "maintenance"),
            ("enableASGLifecycleDraining", "terminate"),
        ):
            others = ",".join(other for other in DRAIN_BY_DEFAULT if other != notice)
            self.assertEqual(told(**{switch: False}), {"DrainOn": others})
        self.assertEqual(told(enableRebalanceMonitoring=True), {"CordonOn": "rebalance"})
        both = told(enableRebalanceMonitoring=True, enableRebalanceDraining=True)
        self.assertEqual(both, {"DrainOn": ",".join(NOTICES)})

    def test_cordon_only_holds_for_every_notice_that_is_acted_on(self) -> None:
        self.assertEqual(told(**QUEUE, cordonOnly=True), {"DrainOn": "off", "CordonOn": ",".join(NOTICES)})
        without_spot = told(cordonOnly=True, enableSpotInterruptionDraining=False)
        self.assertEqual(without_spot, {"DrainOn": "off", "CordonOn": "capacity,maintenance,state-change,terminate"})


class Nodes(unittest.TestCase):
    def test_in_queue_mode_the_tag_is_asked_for_by_default(self) -> None:
        # One of its own: with NTH's both would act on the same nodes.
        self.assertEqual(told(enableSqsTerminationDraining=True)["ManagedTag"], "spillway/managed")
        self.assertEqual(told(enableSqsTerminationDraining=True, managedTag="nth/prod")["ManagedTag"], "spillway/managed")
        self.assertNotIn("ManagedTag", told(**QUEUE, managedTag="nth/prod"))
        self.assertNotIn("ManagedTag", told(managedTag="nth/prod"))

    def test_what_nth_did_by_default_has_a_line_too(self) -> None:
        lines = [line.value for line in converted({"enableSqsTerminationDraining": True}).lines]
        self.assertEqual(
            lines,
            [
                "enableSqsTerminationDraining: true",
                "checkTagBeforeDraining: true (the chart's default)",
                "without --live",
            ],
        )

    def test_imds_mode_takes_the_selector_of_its_template(self) -> None:
        self.assertEqual(told(daemonsetNodeSelector={"a": "1"})["NodeSelector"], "a=1")
        self.assertEqual(
            told(daemonsetNodeSelector={"a": "1"}, nodeSelector={"b": "2", "c": "3"})["NodeSelector"], "b=2,c=3"
        )
        self.assertEqual(told(nodeSelector={"b": "2"}, linuxNodeSelector={"d": "4"})["NodeSelector"], "d=4")
        self.assertEqual(
            told(targetNodeOs="windows", nodeSelector={"b": "2"})["NodeSelector"], "kubernetes.io/os=windows,b=2"
        )
        self.assertEqual(told(targetNodeOs="linux windows", nodeSelector={"b": "2"})["NodeSelector"], "b=2")

    def test_two_different_selectors_are_told_to_have_no_counterpart(self) -> None:
        values = {"targetNodeOs": "linux windows", "windowsNodeSelector": {"a": "1"}, "linuxNodeSelector": {"b": "2"}}
        self.assertNotIn("NodeSelector", told(**values))
        self.assertEqual(verdicts(converted(values))["windowsNodeSelector"], Verdict.NO_COUNTERPART)

    def test_what_kept_nth_off_no_node_is_no_matter(self) -> None:
        everywhere = {
            "nodeSelector": {},
            "affinity": {},
            "tolerations": [],
            "daemonsetTolerations": [{"operator": "Exists"}],
        }
        lines = verdicts(converted(everywhere))
        self.assertEqual({lines[name] for name in everywhere}, {Verdict.SAME})
        some = {"linuxAffinity": {"nodeAffinity": {}}, "tolerations": [{"key": "a"}], "daemonsetTolerations": []}
        lines = verdicts(converted(some))
        self.assertEqual({lines[name] for name in some}, {Verdict.NO_COUNTERPART})
        lines = verdicts(converted(QUEUE | some))
        self.assertEqual({lines[name] for name in some}, {Verdict.NOT_NEEDED})

    def test_in_queue_mode_a_selector_was_only_the_pods(self) -> None:
        self.assertNotIn("NodeSelector", told(**QUEUE, nodeSelector={"a": "1"}))


class Hooks(unittest.TestCase):
    def held(self, **values: object) -> str | None:
        return told(**QUEUE, **values).get("HookMaxWaitS")

    def test_the_longest_wait_is_the_shorter_of_nths_two(self) -> None:
        self.assertIsNone(self.held())
        self.assertIsNone(self.held(nodeTerminationGracePeriod=120))
        self.assertEqual(self.held(nodeTerminationGracePeriod=600), "600")
        self.assertEqual(self.held(heartbeatInterval=60), "172800")
        self.assertEqual(self.held(heartbeatInterval=60, heartbeatUntil=900), "900")
        self.assertEqual(self.held(heartbeatInterval=60, heartbeatUntil=900, nodeTerminationGracePeriod=600), "600")
        self.assertIsNone(self.held(heartbeatUntil=900))
        self.assertEqual(self.held(nodeTerminationGracePeriod=999_999), "172800")


class Marks(unittest.TestCase):
    def test_are_nths_own(self) -> None:
        found = told(
            taintNode=True,
            enableOutOfServiceTaint=True,
            excludeFromLoadBalancers=True,
            emitKubernetesEvents=True,
            dryRun=True,
        )
        expected = {
            "Taints": "nth,out-of-service",
            "LoadBalancers": "exclude",
            "NodeEvents": "true",
            "DryRun": "true",
        }
        self.assertEqual(found, expected)

    def test_another_effect_of_the_taint_has_no_counterpart(self) -> None:
        def verdict(value: str) -> Verdict:
            values = {"taintNode": True, "extraEnv": [{"name": "TAINT_EFFECT", "value": value}]}
            return verdicts(converted(values))["extraEnv TAINT_EFFECT"]

        self.assertIs(verdict("NoSchedule"), Verdict.SAME)
        self.assertIs(verdict("NoExecute"), Verdict.NO_COUNTERPART)
        self.assertIs(verdict("noexecute"), Verdict.DIFFERS)


class Webhook(unittest.TestCase):
    VALUES = {
        "webhookURL": "https://x/s3cr3t",
        "webhookHeaders": '{"a":"b"}',
        "webhookProxy": "http://p",
        "webhookTemplate": '{"text":"say \\"{{ .Kind }}\\""}',
    }

    def test_becomes_one_document_that_is_no_parameter(self) -> None:
        self.assertEqual(told(**self.VALUES), {"Webhook": "/spillway/webhook"})
        expected = {
            "url": "https://x/s3cr3t",
            "headers": {"a": "b"},
            "proxy": "http://p",
            "template": self.VALUES["webhookTemplate"],
        }
        self.assertEqual(document(installation(self.VALUES)), expected)
        (command,) = commands(self.VALUES)
        self.assertRegex(command, r'^aws ssm put-parameter .* --name /spillway/webhook .*"\$\(tools/spillway from-nth --webhook FILE\)"')
        self.assertNotIn("s3cr3t", str(converted(self.VALUES).lines))

    def test_without_an_address_there_is_none(self) -> None:
        self.assertEqual(told(webhookTemplate="x", webhookHeaders="{}"), {})
        self.assertEqual(told(webhookURL="http://x"), {}, "by plain HTTP Spillway posts nothing")
        self.assertEqual(verdicts(converted({"webhookURL": "http://x"}))["webhookURL"], Verdict.NO_COUNTERPART)

    def test_a_secret_of_the_cluster_is_handed_in(self) -> None:
        for values in (
            {"webhookURLSecretName": "nth-slack", "webhookURL": "https://x"},
            {"extraEnv": [{"name": "WEBHOOK_URL", "valueFrom": {"secretKeyRef": {"name": "nth-slack", "key": "url"}}}]},
        ):
            with self.subTest(values=values):
                self.assertEqual(told(**values), {"Webhook": "/spillway/webhook"})
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
        one = installation({**values, "webhookTemplateConfigMapName": "nth"})
        self.assertEqual(document(one)["template"], "t")

    def test_headers_with_which_nth_would_have_stopped_are_told(self) -> None:
        for headers in ("{", '["a"]', '{"a": 1}'):
            with self.subTest(headers=headers):
                values = {"webhookURL": "https://x", "webhookHeaders": headers}
                self.assertEqual(verdicts(converted(values))["webhookHeaders"], Verdict.NO_COUNTERPART)
                with self.assertRaisesRegex(Unusable, "webhookHeaders"):
                    document(installation(values))

    def test_a_template_works_unchanged_only_if_it_was_rendered(self) -> None:
        def verdict(failed: str | None) -> tuple[Verdict, str]:
            program = lambda: None if failed is None else "it"  # noqa: E731
            with mock.patch.multiple("message_preview.command", program=program, rendered=lambda *_: ("", failed)):
                lines = converted(self.VALUES).lines
            (answer,) = (line.answer for line in lines if line.value.startswith("webhookTemplate:"))
            return answer.verdict, answer.why

        self.assertEqual(verdict("")[0], Verdict.SAME)
        failed = verdict("at line 1, column 3: there is no field Kid")
        self.assertEqual(failed[0], Verdict.NO_COUNTERPART)
        self.assertIn("there is no field Kid", failed[1])
        untried = verdict(None)
        self.assertEqual(untried[0], Verdict.DIFFERS)
        self.assertNotIn("unchanged", untried[1])


def commands(values: dict) -> list[str]:
    return [command for line in converted(values).lines for command in line.answer.commands]


class Manifests(unittest.TestCase):
    def test_of_flux_and_argo_are_unwrapped(self) -> None:
        inner = {"taintNode": True, "logLevel": "debug"}
        source = {"chart": "aws-node-termination-handler"}
        for manifest in (
            {"kind": "HelmRelease", "metadata": {"name": "nth"}, "spec": {"values": inner}},
            {"kind": "Application", "metadata": {"name": "nth"}, "spec": {"source": source | {"helm": {"valuesObject": inner}}}},
            {"kind": "Application", "metadata": {"name": "nth"}, "spec": {"source": {"helm": {"values": "taintNode: true\nlogLevel: debug\n"}}}},
            {"kind": "ApplicationSet", "metadata": {"name": "nth"}, "spec": {"template": {"spec": {"source": {"helm": {"valuesObject": inner}}}}}},
            {"kind": "HelmChart", "metadata": {"name": "nth"}, "spec": {"valuesContent": "taintNode: true\nlogLevel: debug\n"}},
            {"kind": "Application", "metadata": {"name": "nth"}, "spec": {"sources": [{}, {"helm": {"valuesObject": inner}}]}},
        ):
            with self.subTest(manifest=manifest):
                conversion = converted(manifest)
                self.assertEqual(conversion.parameters, {"Taints": "nth", "DryRun": "true"})
                self.assertIn(f"in the {manifest['kind']} nth", conversion.headline)

    def test_manifests_with_values_elsewhere_are_refused(self) -> None:
        for spec in ({"valuesFrom": [{"kind": "ConfigMap"}]}, {"values": ["a"]}):
            with self.subTest(spec=spec), self.assertRaises(Unusable):
                installation({"kind": "HelmRelease", "spec": spec})
        for helm in ({"valueFiles": ["a.yaml"]}, {"parameters": [{"name": "a", "value": "b"}]}, {"valuesObject": []}):
            with self.subTest(helm=helm), self.assertRaises(Unusable):
                installation({"kind": "Application", "spec": {"source": {"helm": helm}}})


class AVersion(unittest.TestCase):
    def test_without_a_parameter_is_not_given_it_and_it_is_told(self) -> None:
        without = {name: parameter for name, parameter in LATER.items() if name != "Taints"}
        conversion = converted({"taintNode": True, "dryRun": True}, without)
        self.assertEqual(conversion.parameters, {"DryRun": "true"})
        self.assertEqual(verdicts(conversion)["taintNode"], Verdict.NOT_IN_THIS_VERSION)
        self.assertEqual(verdicts(converted({"taintNode": True}))["taintNode"], Verdict.SAME)

    def test_that_does_not_take_a_value_is_not_given_it(self) -> None:
        narrow = LATER | {"CordonOn": Parameter(allowed=("", "rebalance"))}
        conversion = converted({"cordonOnly": True}, narrow)
        self.assertNotIn("CordonOn", conversion.parameters)
        self.assertEqual(conversion.parameters["DrainOn"], "off")
        (line,) = [line for line in conversion.lines if line.value == "cordonOnly: true"]
        self.assertEqual(line.answer.verdict, Verdict.NOT_IN_THIS_VERSION)
        self.assertIn("does not take this for CordonOn (it takes  or rebalance)", line.answer.why)

    def test_keeps_to_one_cluster(self) -> None:
        self.assertEqual(
            converted({"dryRun": False}, cluster="prod").parameters,
            {"Clusters": "prod", "DryRun": "true"},
        )

    def test_is_given_what_a_person_sets_over_what_nth_says(self) -> None:
        conversion = convert(installation(QUEUE), LATER, by_hand={"DrainOn": "spot"})
        self.assertEqual(conversion.parameters, {"DrainOn": "spot", "DryRun": "true"})

    def test_always_says_whether_it_is_a_dry_run(self) -> None:
        for nths in (False, True):
            self.assertEqual(converted({"dryRun": nths}).parameters, {"DryRun": "true"})
            live = convert(installation({"dryRun": nths}), LATER, live=True)
            self.assertEqual(live.parameters, {"DryRun": "false"})


class ThisVersion(unittest.TestCase):
    TEMPLATE = parameters()

    def test_has_the_defaults_that_are_not_said(self) -> None:
        self.assertEqual(self.TEMPLATE["DrainOn"].default, ",".join(DRAIN_BY_DEFAULT))
        self.assertEqual(self.TEMPLATE["CordonOn"].default, "off")

    def test_takes_every_value_that_it_is_given(self) -> None:
        """Only for the parameters that it has; for the others the report says so."""
        installations = [
            {**QUEUE, "cordonOnly": True},
            {
                "enableSpotInterruptionDraining": False,
                "enableScheduledEventDraining": False,
                "enableASGLifecycleDraining": False,
            },
            {
                "enableSqsTerminationDraining": True,
                "heartbeatInterval": 30,
                "taintNode": True,
                "dryRun": True,
                "logLevel": "debug",
            },
            {
                "webhookURLSecretName": "nth",
                "emitKubernetesEvents": True,
                "enableOutOfServiceTaint": True,
                "excludeFromLoadBalancers": True,
            },
            {
                "webhookURL": "https://x.example/y",
                "webhookHeaders": '{"a":"b"}',
                "webhookProxy": "http://p:1",
                "webhookTemplate": "{{ .Kind }}",
            },
            {
                "taintNode": True,
                "nodeSelector": {"a/b": "c"},
                "extraEnv": [{"name": "TAINT_EFFECT", "value": "NoExecute"}],
            },
        ]
        seen: set[str] = set()
        for values in installations:
            for name, value in told(**values).items():
                seen.add(name)
                if name in self.TEMPLATE:
                    with self.subTest(parameter=name):
                        self.assertIsNone(self.TEMPLATE[name].refuses(value))
        self.assertEqual(seen, OURS)

    def test_answers_name_existing_parameters(self) -> None:
        answers = (ROOT / "tools/from_nth/answers.py").read_text()
        named = set(re.findall(r"\b([A-Z][a-z]+[A-Za-z]*)=[a-z(/{]", answers))
        named |= set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)(?:=[^`]*)?`", (ROOT / "docs/from-nth.md").read_text()))
        self.assertGreaterEqual(len(named), 8)
        others = {"NotificationTargetARN", "CompleteLifecycleAction"}
        self.assertEqual(named - self.TEMPLATE.keys() - OURS - TO_COME - others, set())
