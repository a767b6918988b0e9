"""What template.yaml has around the function that sends messages: when there is any of it, and what it may do."""

import itertools
import json
import re
import unittest
from pathlib import Path
from typing import Any

import yaml

from test_template import RESOURCES, TEMPLATE, actions, holds, matches, policies, properties

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/announcements.md").read_text()
SCHEMA = json.loads((ROOT / "docs/receipt.schema.json").read_text())
RECEIPT = SCHEMA["properties"]


SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:team/webhook-AbCd12"
OURS = {name for name, resource in RESOURCES.items() if resource.get("Condition") in ("Announces", "MakesAnnouncerRole")}


def without_announcements(value: Any) -> Any:
    """A part of the template, as it is where nobody is notified."""
    if isinstance(value, list):
        return [without_announcements(one) for one in value]
    if not isinstance(value, dict):
        return value
    # Where nobody is notified, there is no webhook either.
    if value.get("Fn::If", [""])[0] in ("Announces", "HasWebhook"):
        return without_announcements(value["Fn::If"][2])
    return {key: without_announcements(one) for key, one in value.items()}


class WhenThereIsSomethingToAnnounceTo(unittest.TestCase):
    def test_all_of_it_is_there_or_none(self) -> None:
        named = {
            *("Announcer", "AnnouncerRole", "AnnouncerLogs", "AnnouncerAnnouncements"),
            *("Announcements", "AnnouncementsPolicy", "UnreadAlarm", "Undelivered", "UndeliveredAlarm"),
        }
        self.assertEqual(OURS, named)
        for name, resource in RESOURCES.items():
            if name not in OURS:
                with self.subTest(resource=name):
                    without = json.dumps(without_announcements(resource))
                    self.assertFalse(any(f'"{ours}"' in without for ours in OURS))

    def test_subnets_and_security_groups_are_given_together(self) -> None:
        rule = TEMPLATE["Rules"]["SubnetsAndSecurityGroups"]["Assertions"][0]["Assert"]
        for subnets, groups, taken in (
            ("", "", True),
            ("subnet-1,subnet-2", "sg-1", True),
            ("", "sg-1", False),
            ("subnet-1", "", False),
            # What SAM makes of "subnet-1, subnet-2" without quotes.
            ("subnet-1,", "sg-1", False),
            ("subnet-1", "sg-1,", False),
        ):
            with self.subTest(subnets=subnets, groups=groups):
                self.assertEqual(holds(rule, {"SubnetIds": subnets, "SecurityGroupIds": groups}), taken)


class TheWayOfAMessage(unittest.TestCase):
    def test_message_is_hidden_while_it_is_under_way(self) -> None:
        window = properties("AnnouncerAnnouncements")["MaximumBatchingWindowInSeconds"]
        least = 6 * properties("Announcer")["Timeout"] + window
        self.assertGreaterEqual(properties("Announcements")["VisibilityTimeout"], least)


class ItsRights(unittest.TestCase):
    def setUp(self) -> None:
        self.policies = policies("AnnouncerRole")
        self.conditions = {
            choice["Fn::If"][1]["PolicyName"]: choice["Fn::If"][0]
            for choice in properties("AnnouncerRole")["Policies"]
            if "Fn::If" in choice
        }

    def allowed(self, **parameters: str) -> set[str]:
        """What the function itself may call in a stack with such parameters."""
        there = [name for name, condition in self.conditions.items() if holds({"Condition": condition}, parameters)]
        return set().union(*(actions(self.policies[name]) for name in there))

    def test_it_may_call_what_its_sinks_need_and_no_more(self) -> None:
        self.assertEqual(self.allowed(), set())
        self.assertEqual(self.allowed(Webhook="/spillway/webhook"), {"ssm:GetParameter", "kms:Decrypt"})
        self.assertEqual(self.allowed(Webhook=SECRET), {"secretsmanager:GetSecretValue", "kms:Decrypt"})
        self.assertEqual(self.allowed(TopicArn="arn"), {"sns:Publish"})

    def test_each_right_is_for_the_one_thing_that_is_named(self) -> None:
        for statement in itertools.chain(*self.policies.values()):
            resource = json.dumps(statement["Resource"])
            with self.subTest(action=statement["Action"]):
                if statement["Action"] == "kms:Decrypt":
                    # Of keys, whose names nobody gives here, by what they encrypt and for whom.
                    by = statement["Condition"]["StringEquals"]
                    self.assertIn("kms:ViaService", by)
                    self.assertTrue(any("Webhook" in json.dumps(value) for value in by.values()))
                else:
                    names = ("Webhook", "TopicArn", "Announcements", "AnnouncerLogs")
                    self.assertTrue(any(name in resource for name in names))


def ended(ending: str, cluster: str = "prod") -> dict[str, Any]:
    detail = {"ending": ending, "cluster": cluster}
    return {"source": "spillway", "detail-type": "Spillway Receipt", "detail": detail}


def pagerduty() -> dict[str, Any]:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("!", lambda loader, suffix, node: None)
    resources: dict[str, Any] = yaml.load((ROOT / "deploy/cloudformation/pagerduty.yaml").read_text(), Loader)["Resources"]
    return resources


class RulesOfOnesOwn(unittest.TestCase):
    def test_the_rule_on_the_page_lets_through_what_it_says(self) -> None:
        blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
        (pattern,) = (block for block in blocks if "source" in block)
        self.assertTrue(matches(pattern, ended("failed")))
        self.assertFalse(matches(pattern, ended("drained")))
        self.assertFalse(matches(pattern, ended("failed", cluster="stage")))

    def test_the_message_on_the_page_is_one_that_is_sent(self) -> None:
        (body,) = re.findall(r"--message-body '(.*)'", PAGE)
        event = json.loads(body.replace("'$account'", "123456789012"))
        self.assertEqual((event["source"], event["detail-type"], event["account"]), ("spillway", "Spillway Receipt", "123456789012"))
        self.assertLessEqual(set(event["detail"]), set(RECEIPT))

    def test_pagerduty_rule_uses_fields_of_every_receipt(self) -> None:
        rule = pagerduty()["Failed"]["Properties"]
        self.assertTrue(matches(rule["EventPattern"], ended("failed")))
        self.assertFalse(matches(rule["EventPattern"], ended("drained")))
        transformer = rule["Targets"][0]["InputTransformer"]
        fields = {path.removeprefix("$.detail.") for path in transformer["InputPathsMap"].values()}
        self.assertLessEqual(fields, set(RECEIPT))
        self.assertEqual(set(re.findall(r"<(\w+)>", transformer["InputTemplate"])), set(transformer["InputPathsMap"]))
        # The least that a receipt has: EventBridge leaves out what is not there.
        least = {name: f"a {name}" for name in SCHEMA["required"]}
        for name, path in transformer["InputPathsMap"].items():
            value = least.get(path.removeprefix("$.detail."), "")
            template = transformer["InputTemplate"].replace("<reason>", f'"{value}"' if name == "reason" else "<reason>")
            transformer["InputTemplate"] = template.replace(f"<{name}>", value)
        incident = json.loads(transformer["InputTemplate"])["payload"]
        for name in ("summary", "source", "severity"):
            self.assertTrue(incident[name].strip("/"), name)


if __name__ == "__main__":
    unittest.main()
