"""The rules in deploy/cloudformation that lead receipts to Amazon Q and to a log group."""

import json
import re
import unittest
from typing import Any

from bed_aws import template
from bed_aws.evaluator import Asked, Evaluator
from bed_aws.intrinsics import Intrinsics
from bed_aws.ruler import Ruler
from test_patterns import changed, leaves, misses
from test_template import ROOT

ACCOUNT, REGION = "123456789012", "us-east-1"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:spillway-amazon-q-Topic"
GROUP = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/events/spillway-receipt-log"
KNOWN = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "spillway-receipt-log",
    "Log": "/aws/events/spillway-receipt-log",
    "Log.Arn": f"{GROUP}:*",
    "Topic": TOPIC,
}
SCHEMA = json.loads((ROOT / "docs/receipt.schema.json").read_text())
ENDINGS = {one["const"] for one in SCHEMA["$defs"]["Ending"]["oneOf"]}
OVER = {"drained", "done", "failed", "ignored"}
DETAIL = {
    **{"ending": "failed", "cluster": "prod", "node": "ip-10-0-0-2", "instance": "i-1", "request_id": "r-1"},
    "notice": {"event_id": "e-1", "kind": "spot interruption"},
    "reason": 'a webhook said "no"\n',
}


def read(file: str) -> dict[str, Any]:
    of = template.read(ROOT / f"deploy/cloudformation/{file}.yaml")
    intrinsics = Intrinsics(of, {}, KNOWN)
    return {name: intrinsics.value(one.get("Properties", {})) for name, one in of["Resources"].items()}


def receipt(**detail: Any) -> dict[str, Any]:
    return {"source": "spillway", "detail-type": "Spillway Receipt", "account": ACCOUNT, "detail": {**DETAIL, **detail}}


class EachRule(unittest.TestCase):
    def test_neighbours_of_a_receipt_do_not_match(self) -> None:
        for file, name in (("amazon-q", "Ended"), ("receipt-log", "Receipts")):
            pattern = read(file)[name]["EventPattern"]
            ruler = Ruler({name: pattern})
            self.assertEqual(ruler.rules_for(receipt()), [name])
            self.assertEqual(ruler.rules_for({**receipt(), "detail-type": "Spillway Drain Begun"}), [])
            for path, filters in leaves(pattern):
                for value in misses(filters):
                    with self.subTest(file=file, field=path, value=value):
                        self.assertEqual(ruler.rules_for(changed(receipt(), path, value)), [])

    def test_bus_is_the_default_one_or_that_of_many_accounts(self) -> None:
        for file, name in (("amazon-q", "Ended"), ("receipt-log", "Receipts")):
            of = template.read(ROOT / f"deploy/cloudformation/{file}.yaml")
            for bus in ("default", "spillway-receipts"):
                rule = Intrinsics(of, {"Bus": bus}, KNOWN).value(of["Resources"][name]["Properties"])
                self.assertEqual(rule["EventBusName"], bus)


class AmazonQ(unittest.TestCase):
    def setUp(self) -> None:
        self.resources = read("amazon-q")
        self.rule = self.resources["Ended"]
        (self.target,) = self.rule["Targets"]

    def test_notices_that_are_over_are_sent_and_no_other(self) -> None:
        ruler = Ruler({"Ended": self.rule["EventPattern"]})
        self.assertEqual({one for one in ENDINGS if ruler.rules_for(receipt(ending=one))}, OVER)

    def test_fields_are_those_of_the_receipt(self) -> None:
        transformer = self.target["InputTransformer"]
        paths = {path.removeprefix("$.detail.").partition(".")[0] for path in transformer["InputPathsMap"].values()}
        self.assertLessEqual(paths, set(SCHEMA["properties"]))
        self.assertEqual(set(re.findall(r"<(\w+)>", transformer["InputTemplate"])), set(transformer["InputPathsMap"]))

    def test_description_is_of_a_field_that_every_receipt_has(self) -> None:
        self.assertIn("reason", SCHEMA["required"])

    def test_topic_lets_rules_publish(self) -> None:
        self.assertEqual(self.target["Arn"], TOPIC)
        policy = self.resources["TopicPolicy"]["PolicyDocument"]["Statement"]
        allowed = Evaluator(ACCOUNT).lets_in("events.amazonaws.com", policy, Asked("sns:Publish", TOPIC))
        self.assertTrue(allowed)


class ReceiptLog(unittest.TestCase):
    def setUp(self) -> None:
        self.resources = read("receipt-log")

    def test_log_group_lets_rules_write(self) -> None:
        (target,) = self.resources["Receipts"]["Targets"]
        self.assertEqual(target["Arn"], GROUP)
        policy = json.loads(self.resources["LogPolicy"]["PolicyDocument"])["Statement"]
        for action in ("CreateLogStream", "PutLogEvents"):
            asked = Asked(f"logs:{action}", f"{GROUP}:log-stream:one")
            self.assertTrue(Evaluator(ACCOUNT).lets_in("events.amazonaws.com", policy, asked))


if __name__ == "__main__":
    unittest.main()
