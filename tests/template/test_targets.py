"""Who may reach the function and the queues: the rules of this stack and nobody else, as IAM evaluates their policies."""

import unittest
from typing import Any

from bed_aws.evaluator import Asked, Evaluator
from bed_aws.iam import names
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from test_template import RESOURCES, SCHEDULES, TEMPLATE, of_type, properties

MOTO = Moto("123456789012", "us-east-1")
KNOWN = names(RESOURCES, MOTO, {})
INTRINSICS = Intrinsics(TEMPLATE, {"TopicArn": "arn:aws:sns:us-east-1:123456789012:drains"}, KNOWN)
EVALUATOR = Evaluator(MOTO.account)
EVENTS = "events.amazonaws.com"
ANOTHER = "arn:aws:events:us-east-1:123456789012:rule/another"
RULES = {name: KNOWN[f"{name}.Arn"] for name in of_type("AWS::Events::Rule")}


def granted(permission: dict[str, Any]) -> dict[str, Any]:
    """The statement that Lambda makes of a permission."""
    given = INTRINSICS.value(permission)
    return {
        "Effect": "Allow",
        "Principal": {"Service": given["Principal"]},
        "Action": given["Action"],
        "Resource": KNOWN["Drain.Arn"],
        "Condition": {"ArnLike": {"AWS:SourceArn": given["SourceArn"]}},
    }


def lets_in(statements: list[dict[str, Any]], action: str, resource: str, rule: str, tls: str = "true") -> bool:
    context = {"aws:SourceArn": rule, "aws:SecureTransport": tls}
    return EVALUATOR.lets_in(EVENTS, statements, Asked(action, resource, context))


class TheTargets(unittest.TestCase):
    def test_each_rule_may_invoke_the_function_and_no_other_may(self) -> None:
        statements = [granted(one) for one in of_type("AWS::Lambda::Permission").values()]
        self.assertLess(set(SCHEDULES), set(RULES))
        for name, arn in RULES.items():
            with self.subTest(rule=name):
                self.assertTrue(lets_in(statements, "lambda:InvokeFunction", KNOWN["Drain.Arn"], arn))
        self.assertFalse(lets_in(statements, "lambda:InvokeFunction", KNOWN["Drain.Arn"], ANOTHER))

    def test_each_queue_accepts_only_its_rules_over_tls(self) -> None:
        for policy, queue, senders, others in (
            ("FailuresPolicy", "Failures", list(RULES.values()), [ANOTHER]),
            # Only the function fills this one.
            ("AnnouncementsPolicy", "Announcements", [], [ANOTHER, *RULES.values()]),
        ):
            statements = INTRINSICS.value(properties(policy)["PolicyDocument"]["Statement"])
            arn = KNOWN[f"{queue}.Arn"]
            for rule in senders:
                with self.subTest(queue=queue, rule=rule):
                    self.assertTrue(lets_in(statements, "sqs:SendMessage", arn, rule))
                    self.assertFalse(lets_in(statements, "sqs:SendMessage", arn, rule, tls="false"))
            for rule in others:
                with self.subTest(queue=queue, rule=rule):
                    self.assertFalse(lets_in(statements, "sqs:SendMessage", arn, rule))


if __name__ == "__main__":
    unittest.main()
