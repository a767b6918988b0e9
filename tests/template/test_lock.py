"""The lock (Lock=on): a policy of the function that lets in the stack's rules, its two roles and Operators, as IAM evaluates it."""

import unittest
from typing import Any

from bed_aws.evaluator import Asked
from bed_aws.intrinsics import Intrinsics
from test_announcing import holds
from test_targets import ANOTHER, EVALUATOR, EVENTS, KNOWN, RULES
from test_template import PARAMETERS, RESOURCES, RULES as NOTICES, SCHEDULE, TEMPLATE

FUNCTION = KNOWN["Drain.Arn"]
ROLES = [KNOWN["DrainRole.Arn"], KNOWN["SchedulesRole.Arn"]]
OPERATOR, PERSON, STRANGER = (
    f"arn:aws:iam::123456789012:role/{name}" for name in ("operator", "aws-reserved/sso.amazonaws.com/AWSReservedSSO_Ops_0a", "stranger")
)
OPERATORS = f"{OPERATOR},{PERSON.removesuffix('0a')}*"
# A function, the same by its name for today's code, and an alias of it.
QUALIFIERS = ("", ":$LATEST", ":live")
INVOKING = {name: RULES[name] for name in (*NOTICES, SCHEDULE)}
EVERYTHING = [{"name": "all", "policy": {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}}]


def statements(lock: str, operators: str = "") -> list[dict[str, Any]]:
    parameters = {"Lock": lock, "Operators": operators}
    document = RESOURCES["FunctionPolicy"]["Properties"]["PolicyDocument"]
    return Intrinsics(TEMPLATE, parameters, KNOWN).value(document["Statement"])


def may(who: str, policy: list[dict[str, Any]], qualifier: str = "", action: str = "lambda:InvokeFunction") -> bool:
    """Whether somebody who may everything otherwise may invoke the function."""
    return EVALUATOR.reaches(who, EVERYTHING, policy, Asked(action, FUNCTION + qualifier))


def rule_may(rule: str, policy: list[dict[str, Any]]) -> bool:
    return EVALUATOR.lets_in(EVENTS, policy, Asked("lambda:InvokeFunction", FUNCTION, {"aws:SourceArn": rule}))


class TheLock(unittest.TestCase):
    def test_it_is_off_unless_it_is_switched_on(self) -> None:
        self.assertEqual((PARAMETERS["Lock"]["Default"], RESOURCES["FunctionPolicy"]["Condition"]), ("off", "HasLock"))
        there = {lock: holds({"Condition": "HasLock"}, {"Lock": lock}) for lock in PARAMETERS["Lock"]["AllowedValues"]}
        self.assertEqual(there, {"off": False, "on": True, "open": True})

    def test_each_rule_of_the_stack_invokes_locked_or_open_and_no_other(self) -> None:
        for lock in ("on", "open"):
            policy = statements(lock)
            self.assertEqual([name for name, arn in INVOKING.items() if not rule_may(arn, policy)], [], lock)
            self.assertFalse(rule_may(ANOTHER, policy))

    def test_the_roles_and_operators_invoke_and_a_stranger_does_not_by_any_name(self) -> None:
        policy = statements("on", OPERATORS)
        for qualifier in QUALIFIERS:
            for action in ("lambda:InvokeFunction", "lambda:InvokeAsync"):
                with self.subTest(qualifier=qualifier, action=action):
                    self.assertEqual([who for who in (*ROLES, OPERATOR, PERSON) if not may(who, policy, qualifier, action)], [])
                    self.assertFalse(may(STRANGER, policy, qualifier, action))

    def test_without_operators_nobody_invokes_by_hand(self) -> None:
        policy = statements("on")
        self.assertEqual([who for who in (*ROLES, OPERATOR, STRANGER) if may(who, policy)], ROLES)
        self.assertNotIn("", policy[1]["Condition"]["ArnNotLike"]["aws:PrincipalArn"])

    def test_a_permission_that_somebody_adds_lets_no_other_rule_in(self) -> None:
        condition = {"ArnLike": {"aws:SourceArn": ANOTHER}}
        added = {"Effect": "Allow", "Principal": {"Service": EVENTS}, "Action": "lambda:InvokeFunction", "Resource": FUNCTION, "Condition": condition}
        self.assertFalse(rule_may(ANOTHER, [*statements("on"), added]))
        self.assertTrue(rule_may(ANOTHER, [*statements("open"), added]))

    def test_an_open_lock_refuses_nobody(self) -> None:
        self.assertTrue(may(STRANGER, statements("open")))

    def test_it_comes_after_the_permissions_that_it_replaces_and_is_never_taken_away(self) -> None:
        policy = RESOURCES["FunctionPolicy"]
        self.assertCountEqual(policy["DependsOn"], [f"{rule}Permission" for rule in INVOKING])
        # Also when the deployment that makes it is rolled back: without it no rule would invoke.
        self.assertEqual((policy["DeletionPolicy"], policy["UpdateReplacePolicy"]), ("Retain", "Retain"))

    def test_where_aws_has_no_such_policy_it_is_refused_before_the_deployment(self) -> None:
        rule = TEMPLATE["Rules"]["LockWhereThereIsOne"]
        self.assertEqual(rule["RuleCondition"], {"Fn::Not": [{"Fn::Equals": [{"Ref": "Lock"}, "off"]}]})
        (regions, _) = rule["Assertions"][0]["Assert"]["Fn::Not"][0]["Fn::Contains"]
        self.assertCountEqual(regions, without_it())


def without_it() -> list[str]:
    """The Regions whose schemas have functions and no such policy."""
    from cfnlint.helpers import REGIONS
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    types = {region: set(PROVIDER_SCHEMA_MANAGER.get_resource_types(region)) for region in REGIONS}
    return [region for region, names in types.items() if "AWS::Lambda::Function" in names and "AWS::Lambda::ResourcePolicy" not in names]


if __name__ == "__main__":
    unittest.main()
