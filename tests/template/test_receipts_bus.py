"""deploy/cloudformation/receipts.yaml: which events are forwarded, and that both sides allow exactly that."""

import unittest
from typing import Any

from bed_aws import template
from bed_aws.evaluator import Asked, Evaluator
from bed_aws.intrinsics import Intrinsics
from bed_aws.ruler import Ruler
from test_patterns import changed, leaves, misses
from test_template import ROOT

FILE = template.read(ROOT / "deploy/cloudformation/receipts.yaml")
RESOURCES: dict[str, Any] = FILE["Resources"]
BUS = "arn:aws:events:us-east-1:999999999999:event-bus/spillway-receipts"
MEMBER, ORGANIZATION = "123456789012", "o-0123456789"
RECEIPT = {"source": "spillway", "detail-type": "Spillway Receipt", "account": MEMBER, "detail": {"ending": "drained"}}
KNOWN = {"AWS::AccountId": MEMBER, "AWS::StackName": "spillway-receipts", "Receipts.Arn": BUS, "Sender.Arn": "arn:aws:iam::1:role/s"}
SENDS = Intrinsics(FILE, {"Bus": BUS}, {**KNOWN, "Receipts": "spillway-receipts"})
GATHERS = Intrinsics(FILE, {"Organization": ORGANIZATION}, {**KNOWN, "Receipts": "spillway-receipts"})


def made(side: Intrinsics) -> set[str]:
    return {name for name, resource in RESOURCES.items() if side.holds(resource["Condition"])}


def of_sender(part: str) -> Any:
    return SENDS.value(RESOURCES["Sender"]["Properties"][part])


class TheTwoSides(unittest.TestCase):
    def test_are_one_template_and_share_nothing(self) -> None:
        self.assertEqual(made(GATHERS), {"Receipts", "ReceiptsPolicy"})
        self.assertEqual(made(SENDS), {"Forward", "Sender"})

    def test_are_not_both_chosen_and_one_is(self) -> None:
        def is_taken(**parameters: str) -> bool:
            side = Intrinsics(FILE, parameters, KNOWN)
            return all(side.holds(one["Assert"]) for one in FILE["Rules"]["OneOfTheTwo"]["Assertions"])

        self.assertTrue(is_taken(Bus=BUS) and is_taken(Organization=ORGANIZATION))
        self.assertFalse(is_taken() or is_taken(Bus=BUS, Organization=ORGANIZATION))


class TheRule(unittest.TestCase):
    def test_forwards_receipts_and_nothing_else(self) -> None:
        pattern = SENDS.value(RESOURCES["Forward"]["Properties"]["EventPattern"])
        ruler = Ruler({"Forward": pattern})
        self.assertEqual(ruler.rules_for(RECEIPT), ["Forward"])
        for event in (
            {**RECEIPT, "detail-type": "Spillway Drain Begun"},
            {**RECEIPT, "account": "999999999999"},
            {**RECEIPT, "replay-name": "again"},
        ):
            self.assertEqual(ruler.rules_for(event), [], event)
        for path, filters in leaves(pattern):
            for value in misses(filters):
                with self.subTest(field=path, value=value):
                    self.assertEqual(ruler.rules_for(changed(RECEIPT, path, value)), [])


class WhatEachAllows(unittest.TestCase):
    def may(self, asked: Asked, identity: list[dict[str, Any]] | None = None) -> bool:
        """Whether the sender's role may, by its own policy and by that of the bus."""
        own = [{"name": one["PolicyName"], "policy": one["PolicyDocument"]} for one in of_sender("Policies")]
        bus = GATHERS.value(RESOURCES["ReceiptsPolicy"]["Properties"]["Statement"])
        role = f"arn:aws:iam::{MEMBER}:role/spillway-receipts-Sender"
        return Evaluator("999999999999").lets_across(role, own if identity is None else identity, [bus], asked)

    def asked(self, resource: str = BUS, **changed: Any) -> Asked:
        context = {"organization": ORGANIZATION, "source": ["spillway"], "detail_type": ["Spillway Receipt"], **changed}
        keys = {"organization": "aws:PrincipalOrgID", "source": "events:source", "detail_type": "events:detail-type"}
        return Asked("events:PutEvents", resource, {keys[name]: value for name, value in context.items() if value is not None})

    def test_a_receipt_of_the_organization_arrives(self) -> None:
        self.assertTrue(self.may(self.asked()))

    def test_each_side_has_to_allow_it(self) -> None:
        self.assertFalse(self.may(self.asked(), identity=[]), "the role's own policy")
        others: list[dict[str, Any]] = [{"organization": "o-9876543210"}, {"organization": None}]
        others += [{"source": ["my.app"]}, {"source": ["spillway", "my.app"]}, {"source": None}]
        others += [{"detail_type": ["Spillway Drain Begun"]}, {"detail_type": None}]
        for other in others:
            with self.subTest(other=other):
                self.assertFalse(self.may(self.asked(**other)))

    def test_the_role_sends_to_this_bus_alone(self) -> None:
        self.assertFalse(self.may(self.asked(BUS.replace("spillway-receipts", "default"))))

    def test_only_event_bridge_for_this_account_takes_the_role(self) -> None:
        (trust,) = of_sender("AssumeRolePolicyDocument")["Statement"]
        self.assertEqual(trust["Principal"], {"Service": "events.amazonaws.com"})
        self.assertEqual(trust["Condition"], {"StringEquals": {"aws:SourceAccount": MEMBER}})


if __name__ == "__main__":
    unittest.main()
