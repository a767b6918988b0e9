"""RoleArns: a stack without roles of its own, and deploy/cloudformation/roles.yaml, which makes them."""

import json
import re
import subprocess
import unittest
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Any

from bed_aws.intrinsics import Intrinsics
from bed_aws.template import read
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from test_template import PARAMETERS, RESOURCES, ROOT, TEMPLATE, holds

ROLES = read(ROOT / "deploy/cloudformation/roles.yaml")
ACCOUNT, STACK = "123456789012", "a-name-of-twenty-let"
ARNS = ",".join(f"arn:aws:iam::{ACCOUNT}:role/spillway-roles-{name}-1" for name in ("DrainRole", "SchedulesRole", "AnnouncerRole"))
PSEUDO = {"AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::StackName": STACK, "AWS::URLSuffix": "amazonaws.com"}
# The part of an ARN before the name of a resource, the part behind it, and the longest name.
FORMS = {
    "AWS::Lambda::Function": ("lambda:us-east-1:123456789012:function:", "", 64),
    "AWS::Logs::LogGroup": ("logs:us-east-1:123456789012:log-group:", ":*", 512),
    "AWS::SQS::Queue": ("sqs:us-east-1:123456789012:", "", 80),
    "AWS::Scheduler::ScheduleGroup": ("scheduler:us-east-1:123456789012:schedule-group/", "", 64),
}
# With these every right is there, and with each other one less.
WITH_ALL = {"Webhook": "/spillway/webhook", "TopicArn": "arn:aws:sns:us-east-1:123456789012:drains", "ManagedTag": "x", "LoadBalancers": "wait", "Replace": "spot", "Clusters": "prod"}
CHOICES = [{}, WITH_ALL, {"HookGroupTag": "team=shop"}, {"Webhook": "arn:aws:secretsmanager:us-east-1:123456789012:secret:a-AbCd12"}]


def physical_name(logical_id: str, longest: int) -> str:
    """The name that CloudFormation gives a resource."""
    name = f"{STACK}-{logical_id}-ABCDEFGHIJKL"
    assert len(name) <= longest, "CloudFormation would shorten it"
    return name


def known() -> dict[str, str]:
    """The ARNs of the stack's own resources, and the names of its roles."""
    found = dict(PSEUDO)
    for logical_id, resource in RESOURCES.items():
        if resource["Type"] in FORMS:
            before, behind, longest = FORMS[resource["Type"]]
            name = physical_name(logical_id, longest)
            found |= {logical_id: name, f"{logical_id}.Arn": f"arn:aws:{before}{name}{behind}"}
    return found | role_names()


def role_names() -> dict[str, str]:
    names = [name for name, resource in RESOURCES.items() if resource["Type"].startswith("AWS::IAM::")]
    return {f"{name}{part}": f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in names for part in ("", ".Arn")}


def documents(template: dict[str, Any], parameters: dict[str, str], names: dict[str, str]) -> dict[str, Any]:
    """The roles and policies of a template, with its functions replaced."""
    stack = Intrinsics(template, parameters, names)
    return {
        name: stack.value(resource["Properties"])
        for name, resource in template["Resources"].items()
        if resource["Type"].startswith("AWS::IAM::") and ("Condition" not in resource or stack.holds(resource["Condition"]))
    }


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """The places at which a value is no text that the other's pattern matches."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [at for key in one.keys() | other.keys() for at in differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list):
        return [at for index, (a, b) in enumerate(zip_longest(one, other)) for at in differences(a, b, f"{path}.{index}")]
    same = one == other or (isinstance(one, str) and isinstance(other, str) and fnmatchcase(one, other))
    return [] if same else [f"{path}: {one} {other}"]


class RolesOfItsOwn(unittest.TestCase):
    def test_it_has_none_with_those_that_are_given(self) -> None:
        for name, resource in RESOURCES.items():
            if resource["Type"].startswith("AWS::IAM::"):
                with self.subTest(resource=name):
                    condition = {"Condition": resource["Condition"]}
                    self.assertFalse(holds(condition, {**WITH_ALL, "HookGroupTag": "a=b", "RoleArns": ARNS}))
                    self.assertTrue(holds(condition, {**WITH_ALL, "HookGroupTag": "a=b"}))

    def test_each_function_and_the_schedules_take_theirs(self) -> None:
        for arns, expected in ((ARNS, ARNS.split(",")), ("", [role_names()[name] for name in ("DrainRole", "SchedulesRole", "AnnouncerRole")])):
            stack = Intrinsics(TEMPLATE, {"RoleArns": arns}, known())
            schedules = stack.value(RESOURCES["Drain"]["Properties"]["Environment"]["Variables"]["SPILLWAY_SCHEDULES"])
            drain, announcer = (stack.value(RESOURCES[name]["Properties"]["Role"]) for name in ("Drain", "Announcer"))
            names = known()
            self.assertEqual([drain, schedules.split(" ")[1], announcer], expected)
            self.assertEqual(schedules.split(" ")[::2], [names["Schedules"], names["Failures.Arn"]])
            self.assertEqual(stack.value(TEMPLATE["Outputs"]["RoleArn"]["Value"]), expected[0])

    def test_all_three_are_given_or_none(self) -> None:
        pattern = re.compile(PARAMETERS["RoleArns"]["AllowedPattern"])
        one = "arn:aws-cn:iam::123456789012:role/teams/a/spillway+=.@_-1"
        for good in ("", ARNS, ",".join([one] * 3)):
            self.assertRegex(good, pattern)
        for bad in (one, f"{one},{one}", f"{one},{one},", ",".join([one] * 4), f"{one}, {one}, {one}", f"{one}{one}{one}", ",,"):
            self.assertNotRegex(bad, pattern)

    def test_deployer_may_only_pass_roles(self) -> None:
        needed: set[str] = set()
        for kind in {one["Type"] for one in RESOURCES.values() if not one["Type"].startswith("AWS::IAM::")}:
            handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["handlers"]
            needed |= {right for name, one in handlers.items() if name != "list" for right in one["permissions"]}
        self.assertEqual({right for right in needed if right.startswith("iam:")}, {"iam:PassRole"})
        policy = json.loads((ROOT / "deploy/iam/deployer-policy.json").read_text())["Statement"]
        rights = {right for statement in policy for right in statement["Action"]}
        self.assertEqual({right for right in rights if right.startswith("iam:")}, {"iam:PassRole"})


class RolesOfAnother(unittest.TestCase):
    def test_the_file_is_what_the_script_writes(self) -> None:
        subprocess.run([ROOT / "scripts/roles-template", "--check"], check=True)

    def test_each_right_is_the_stacks_and_covers_its_resources(self) -> None:
        for choice in CHOICES:
            stack = documents(TEMPLATE, choice, known())
            roles = documents(ROLES, {"StackName": STACK, **choice}, {**PSEUDO, **role_names()})
            # The announcer's role is made for a stack without messages, too.
            stack.setdefault("AnnouncerRole", documents(TEMPLATE, {"TopicArn": "x"}, known())["AnnouncerRole"])
            if not holds({"Condition": "Announces"}, choice):
                stack["AnnouncerRole"]["Policies"] = [one for one in stack["AnnouncerRole"]["Policies"] if one["PolicyName"] == "receive"]
            with self.subTest(parameters=choice):
                self.assertEqual(differences(stack, roles), [])

    def test_a_name_that_cloudformation_shortens_is_refused(self) -> None:
        pattern = re.compile(ROLES["Parameters"]["StackName"]["AllowedPattern"])
        self.assertRegex(STACK, pattern)
        self.assertNotRegex(f"{STACK}s", pattern)
        for logical_id, resource in RESOURCES.items():
            if resource["Type"] in FORMS:
                physical_name(logical_id, FORMS[resource["Type"]][2])


if __name__ == "__main__":
    unittest.main()
