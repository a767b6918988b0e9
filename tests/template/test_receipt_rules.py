"""Rules for receipts in deploy/cloudformation and on the pages: what they let through, and that their targets take it."""

import json
import re
import unittest
from typing import Any

import jsonschema
from bed_aws import template
from bed_aws.evaluator import Asked, Evaluator
from bed_aws.intrinsics import Intrinsics
from bed_aws.ruler import Ruler
from test_patterns import changed, leaves, misses
from test_template import ROOT

ACCOUNT, REGION = "123456789012", "us-east-1"
WHERE = f"{REGION}:{ACCOUNT}"
TOPIC = f"arn:aws:sns:{WHERE}:spillway-amazon-q-Topic"
GROUP = f"arn:aws:logs:{WHERE}:log-group:/aws/events/spillway"
BUS = "arn:aws:events:us-east-1:999999999999:event-bus/spillway-receipts"
ORGANIZATION = "o-0123456789"
KNOWN = {
    **{"AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::Region": REGION, "AWS::StackName": "spillway"},
    **{"Log": "/aws/events/spillway", "Log.Arn": f"{GROUP}:*", "Topic": TOPIC, "Receipts.Arn": BUS, "Receipts": "bus"},
    **{name: name for name in ("Sender.Arn", "PagerDuty.Arn", "Role.Arn")},
}
SCHEMA = json.loads((ROOT / "docs/receipt.schema.json").read_text())
ENDINGS = {one["const"] for one in SCHEMA["$defs"]["Ending"]["oneOf"]}
# Rules of files, and the endings that they let through.
RULES = {
    ("amazon-q", "Ended"): {"drained", "done", "failed", "ignored"},
    ("pagerduty", "Failed"): {"failed"},
    ("receipt-log", "Receipts"): ENDINGS,
    ("receipts", "Forward"): ENDINGS,
}


def blocks(page: str) -> list[dict[str, Any]]:
    found = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return [json.loads(block) for block in found]


def read(file: str, name: str, **parameters: str) -> dict[str, Any]:
    """The properties of a resource of a file."""
    of = template.read(ROOT / f"deploy/cloudformation/{file}.yaml")
    properties: dict[str, Any] = Intrinsics(of, parameters, KNOWN).value(of["Resources"][name]["Properties"])
    return properties


def receipt(**detail: str) -> dict[str, Any]:
    event = {"source": "spillway", "detail-type": "Spillway Receipt", "account": ACCOUNT}
    return {**event, "detail": {"ending": "failed", "cluster": "prod", **detail}}


class EachRule(unittest.TestCase):
    def test_rules_pass_receipts_of_their_endings_alone(self) -> None:
        for (file, name), endings in RULES.items():
            pattern = read(file, name)["EventPattern"]
            passes = Ruler({name: pattern}).rules_for
            self.assertEqual({ending for ending in ENDINGS if passes(receipt(ending=ending))}, endings)
            self.assertEqual(passes({**receipt(), "detail-type": "Spillway Drain Begun"}), [])
            for path, filters in leaves(pattern):
                for value in misses(filters):
                    if path[-1] != "ending" or value not in list(endings):
                        with self.subTest(file=file, field=path, value=value):
                            self.assertEqual(passes(changed(receipt(), path, value)), [])

    def test_rule_of_the_page_passes_its_cluster_alone(self) -> None:
        (pattern,) = (block for block in blocks("announcements.md") if "source" in block)
        passes = Ruler({"Page": pattern}).rules_for
        seen = [passes(event) for event in (receipt(), receipt(ending="drained"), receipt(cluster="stage"))]
        self.assertEqual(seen, [["Page"], [], []])

    def test_messages_are_made_of_fields_of_every_receipt(self) -> None:
        for file, name in (("amazon-q", "Ended"), ("pagerduty", "Failed"), ("pagerduty", "Drained")):
            with self.subTest(file=file, rule=name):
                made = read(file, name)["Targets"][0]["InputTransformer"]
                fields = {path.removeprefix("$.detail.").partition(".")[0] for path in made["InputPathsMap"].values()}
                self.assertLessEqual(fields, set(SCHEMA["properties"]))
                self.assertEqual(set(re.findall(r"<(\w+)>", made["InputTemplate"])), set(made["InputPathsMap"]))
        # Amazon Q takes no message without a description, and PagerDuty none without a summary.
        self.assertIn("reason", SCHEMA["required"])

    def test_sample_of_the_page_is_a_receipt(self) -> None:
        jsonschema.validate(blocks("receipt.md")[0], SCHEMA)


class TheTargets(unittest.TestCase):
    def test_topic_and_log_group_take_what_the_rules_send(self) -> None:
        of_topic = read("amazon-q", "TopicPolicy")["PolicyDocument"]["Statement"]
        of_log = json.loads(read("receipt-log", "LogPolicy")["PolicyDocument"])["Statement"]
        for policy, action, resource in (
            (of_topic, "sns:Publish", TOPIC),
            (of_log, "logs:CreateLogStream", f"{GROUP}:log-stream:one"),
            (of_log, "logs:PutLogEvents", f"{GROUP}:log-stream:one"),
        ):
            self.assertTrue(Evaluator(ACCOUNT).lets_in("events.amazonaws.com", policy, Asked(action, resource)), action)

    def test_bus_takes_receipts_of_the_organization_alone(self) -> None:
        sender = read("receipts", "Sender", Bus=BUS)["Policies"]
        own = [{"name": one["PolicyName"], "policy": one["PolicyDocument"]} for one in sender]
        bus = [read("receipts", "ReceiptsPolicy", Organization=ORGANIZATION)["Statement"]]
        keys = ("aws:PrincipalOrgID", "events:source", "events:detail-type")
        good = (ORGANIZATION, ["spillway"], ["Spillway Receipt"])

        def may(*values: Any, identity: Any = own, resource: str = BUS) -> bool:
            context = {key: value for key, value in zip(keys, values, strict=True) if value is not None}
            asked = Asked("events:PutEvents", resource, context)
            return Evaluator("999999999999").reaches(f"arn:aws:iam::{ACCOUNT}:role/sender", identity, bus, asked)

        self.assertTrue(may(*good))
        self.assertFalse(may(*good, identity=[]))
        self.assertFalse(may(*good, resource=BUS.replace("spillway-receipts", "default")))
        others = (("o-9876543210", None), (["my.app"], ["spillway", "my.app"], None), (["Spillway Drain Begun"], None))
        for at, values in enumerate(others):
            for value in values:
                with self.subTest(key=keys[at], value=value):
                    self.assertFalse(may(*good[:at], value, *good[at + 1 :]))


if __name__ == "__main__":
    unittest.main()
