"""RoleArns: a stack without roles of its own, and deploy/cloudformation/roles.yaml, which makes them."""

import json
import re
import unittest
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Any

from bed_aws.iam import names
from bed_aws.intrinsics import Intrinsics
from bed_aws.template import read
from test_template import MOTO, PARAMETERS, RESOURCES, ROOT, SECRET, TEMPLATE

ROLES = ("DrainRole", "SchedulesRole", "AnnouncerRole")
ARNS = ",".join(f"arn:aws:iam::123456789012:role/theirs-{name}-1" for name in ROLES)
TOPIC = "arn:aws:sns:us-east-1:123456789012:drains"
# With these every right is there, and with each other choice one less.
WITH_ALL = {
    **{"Webhook": "/spillway/webhook", "TopicArn": TOPIC, "ManagedTag": "x", "LoadBalancers": "wait"},
    **{"Replace": "spot", "Clusters": "prod", "HookGroupTag": "team=shop"},
}
CHOICES = [{"TopicArn": TOPIC}, WITH_ALL, {"HookGroupTag": "team=shop", "Webhook": SECRET}]
# The longest name that CloudFormation does not shorten.
STACK = "a-name-of-twenty-let"
NAMES = names(RESOURCES, MOTO, {name: f"{STACK}-{name}-ABCDEFGHIJKL" for name in RESOURCES})
KNOWN = NAMES | {"AWS::StackName": STACK}


def documents(template: dict[str, Any], parameters: dict[str, str]) -> dict[str, Any]:
    """The roles and policies of a template, with its functions replaced."""
    stack = Intrinsics(template, parameters, KNOWN)
    return {
        name: stack.value(resource["Properties"])
        for name, resource in template["Resources"].items()
        if "::IAM::" in resource["Type"] and ("Condition" not in resource or stack.holds(resource["Condition"]))
    }


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """The places at which a value is no text that the other's pattern matches."""
    if isinstance(one, dict) and isinstance(other, dict):
        both = one.keys() | other.keys()
        return [at for key in both for at in differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list):
        both = enumerate(zip_longest(one, other))
        return [at for index, (a, b) in both for at in differences(a, b, f"{path}.{index}")]
    same = one == other or (isinstance(one, str) and isinstance(other, str) and fnmatchcase(one, other))
    return [] if same else [f"{path}: {one} {other}"]


class RoleArns(unittest.TestCase):
    def test_given_roles_replace_those_of_the_stack(self) -> None:
        self.assertEqual(documents(TEMPLATE, WITH_ALL | {"RoleArns": ARNS}), {})
        for arns, expected in ((ARNS, ARNS.split(",")), ("", [KNOWN[f"{name}.Arn"] for name in ROLES])):
            stack = Intrinsics(TEMPLATE, {"RoleArns": arns}, KNOWN)
            schedules = stack.value(RESOURCES["Drain"]["Properties"]["Environment"]["Variables"]["SPILLWAY_SCHEDULES"])
            drain, announcer = (stack.value(RESOURCES[name]["Properties"]["Role"]) for name in ("Drain", "Announcer"))
            self.assertEqual([drain, schedules.split(" ")[1], announcer], expected)
            self.assertEqual(stack.value(TEMPLATE["Outputs"]["RoleArn"]["Value"]), expected[0])

    def test_all_three_are_given_or_none(self) -> None:
        pattern = re.compile(PARAMETERS["RoleArns"]["AllowedPattern"])
        one = "arn:aws-cn:iam::123456789012:role/teams/a/spillway+=.@_-1"
        for good in ("", ARNS, ",".join([one] * 3)):
            self.assertRegex(good, pattern)
        for bad in (one, f"{one},{one},", ",".join([one] * 4), f"{one}, {one}, {one}", ",,"):
            self.assertNotRegex(bad, pattern)

    def test_deployer_may_only_pass_roles(self) -> None:
        policy = json.loads((ROOT / "deploy/iam/deployer-policy.json").read_text())["Statement"]
        rights = {right for statement in policy for right in statement["Action"]}
        self.assertEqual({right for right in rights if right.startswith("iam:")}, {"iam:PassRole"})

    def test_each_right_is_the_stacks_and_covers_its_resources(self) -> None:
        roles = read(ROOT / "deploy/cloudformation/roles.yaml")
        for choice in CHOICES:
            with self.subTest(parameters=choice):
                theirs = documents(roles, {"StackName": STACK, **choice})
                self.assertEqual(differences(documents(TEMPLATE, choice), theirs), [])
        self.assertNotRegex(f"{STACK}s", roles["Parameters"]["StackName"]["AllowedPattern"])


if __name__ == "__main__":
    unittest.main()
