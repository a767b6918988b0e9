"""The deployer's policies in deploy/iam allow what CloudFormation needs for this template, by its own schemas, and no more.
Of the enroller's policy tests/rights/least.py takes each right away.
"""

import json
import re
import unittest
from pathlib import Path
from typing import Any

import cfnlint
from bed_aws.evaluator import Asked, Evaluator
from bed_aws.template import read
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from test_template import RESOURCES, ROOT

IAM = json.loads((Path(cfnlint.__file__).parent / "data/AdditionalSpecs/Policies.json").read_text())
POLICIES = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "deploy/iam").glob("*.json"))}
# Two, because one managed policy has no room for all; and because the second is what a security team looks at.
DEPLOYERS = ("deployer-policy", "deployer-roles-policy")
ACCOUNT = "123456789012"
EVALUATOR = Evaluator(ACCOUNT)
# What handlers do for properties that this template does not have.
NOT_USED = {
    "keys of one's own": r"kms:.*|logs:(Dis)?[Aa]ssociateKmsKey",
    "users and groups": r"iam:(Attach|Detach)(Group|User)Policy",
    "file systems": r"elasticfilesystem:.*|s3files:.*",
    "layers, code signing, capacity, scaling, concurrency": (
        r"lambda:(GetLayerVersion|(Put|Delete)FunctionCodeSigningConfig|GetCodeSigningConfig|PassCapacityProvider|"
        r"PutFunctionScalingConfig|PutRuntimeManagementConfig|AssociateRuntimeAlias|PublishVersion|"
        r"(Put|Delete)FunctionConcurrency)"
    ),
    "protection, indexes and delivery of logs": (
        r"firehose:.*|s3:REST.*|logs:((Create|Get|Put|Delete|Describe)(LogDelivery|DataProtectionPolicy|IndexPolicy|"
        r"IndexPolicies|ResourcePolicy|ResourcePolicies|LogGroupDeletionProtection|BearerTokenAuthentication))"
    ),
}
# What is not CloudFormation's: SAM, and the steps of docs/install.md around the stack.
OTHERS = {"Stack", "ManagedStackOfSam", "BucketOfSam", "LookAround", "StepsAroundTheStack"}


def handlers() -> set[str]:
    """What CloudFormation calls, in the name of who deploys, to make, read, change and remove the stack's resources."""
    found: set[str] = set()
    dashboard = read(ROOT / "deploy/cloudformation/dashboard.yaml")["Resources"]
    for kind in {resource["Type"] for resource in [*RESOURCES.values(), *dashboard.values()]}:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
        for name, handler in schema["handlers"].items():
            if name != "list":
                found |= set(handler["permissions"])
    return found


def statements() -> dict[str, dict[str, Any]]:
    return {statement["Sid"]: statement for name in DEPLOYERS for statement in POLICIES[name]["Statement"]}


def has_resources(action: str) -> bool:
    """Whether IAM can limit it to a resource."""
    service, _, name = action.partition(":")
    known = {key.lower(): value for key, value in IAM[service]["Actions"].items()}
    return bool(known[name.lower()].get("Resources"))


class TheDeployer(unittest.TestCase):
    def test_may_do_what_cloudformation_does_and_no_more(self) -> None:
        allowed = [action for name, one in statements().items() if name not in OTHERS for action in one["Action"]]
        self.assertEqual(len(allowed), len(set(allowed)), "each action stands once")
        not_used = re.compile("|".join(NOT_USED.values()))
        self.assertEqual(set(allowed), {action for action in handlers() if not not_used.fullmatch(action)})

    def test_each_action_is_bound_to_resources_if_aws_can(self) -> None:
        for name, one in statements().items():
            for action in one["Action"]:
                with self.subTest(statement=name, action=action):
                    self.assertEqual(one["Resource"] != "*", has_resources(action))

    def test_sam_delete_empties_its_prefix(self) -> None:
        bucket = "arn:aws:s3:::aws-sam-cli-managed-default-samclisourcebucket-1"
        for action in ("s3:ListBucket", "s3:ListBucketVersions"):
            self.assertTrue(allows(DEPLOYERS, action, bucket), action)
        for action in ("s3:DeleteObject", "s3:DeleteObjectVersion"):
            self.assertTrue(allows(DEPLOYERS, action, f"{bucket}/spillway/1"), action)
            self.assertFalse(allows(DEPLOYERS, action, "arn:aws:s3:::another/spillway/1"), action)

    def test_each_condition_names_keys_of_its_actions(self) -> None:
        # An absent key satisfies ForAllValues, Null and every negated operator.
        for name, policy in POLICIES.items():
            for one in policy["Statement"]:
                keys = {key.lower() for operator in one.get("Condition", {}).values() for key in operator}
                for action in one["Action"]:
                    # Each action of a pattern has at least the keys of all requests.
                    listed = EVALUATOR.condition_keys(action if "*" not in action else "sts:GetCallerIdentity")
                    with self.subTest(policy=name, statement=one["Sid"], action=action):
                        self.assertEqual(keys - set(listed), set())

    def test_each_is_as_short_as_a_managed_policy_may_be(self) -> None:
        for name, policy in POLICIES.items():
            most = 5120 if name.endswith("-scp") else 6144
            self.assertLessEqual(len(json.dumps(policy, separators=(",", ":"))), most, name)


def allows(names: tuple[str, ...], action: str, resource: str, principal: str = "somebody", **context: Any) -> bool:
    """Whether IAM allows a role with these policies a call; with only denials, whether it leaves the call."""
    policies = [{"name": name, "policy": POLICIES[name]} for name in names]
    if not any(one["Effect"] == "Allow" for one in POLICIES[names[0]]["Statement"]):
        everything = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
        policies.append({"name": "all", "policy": {"Version": "2012-10-17", "Statement": everything}})
    return EVALUATOR.allows(principal, policies, Asked(action, resource, context))


ROLE = f"arn:aws:iam::{ACCOUNT}:role/spillway-DrainRole-1"
OWN = f"arn:aws:iam::{ACCOUNT}:policy/spillway-Network-1"
CLUSTER = "arn:aws:eks:us-east-1:123456789012:cluster/prod"
ENROLLER = ("enroller-policy",)


ENTRY = f"arn:aws:eks:us-east-1:{ACCOUNT}:access-entry/prod/role/{ACCOUNT}/spillway-DrainRole-1/1234"
FUNCTION = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:spillway-Drain-1"
GROUP = f"arn:aws:autoscaling:us-east-1:{ACCOUNT}:autoScalingGroup:0:autoScalingGroupName/workers"
INSTANCE = f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/i-1"


def role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


class WhatTheyMayNot(unittest.TestCase):
    def test_enroller_makes_only_the_functions_entry(self) -> None:
        ours = {"eks:accessEntryType": "STANDARD", "eks:principalArn": ROLE, "eks:kubernetesGroups": ["spillway"]}
        self.assertTrue(allows(ENROLLER, "eks:CreateAccessEntry", CLUSTER, **ours))
        for other in (
            *({"eks:principalArn": role(name)} for name in ("evil-spillway-x", "me", "platform/spillway-DrainRole-1")),
            *({"eks:kubernetesGroups": groups} for groups in (["admins"], ["spillway", "admins"])),
            {"eks:username": "colleague"},
        ):
            self.assertFalse(allows(ENROLLER, "eks:CreateAccessEntry", CLUSTER, **ours | other), other)
        self.assertTrue(allows(ENROLLER, "eks:DeleteAccessEntry", ENTRY))
        self.assertFalse(allows(ENROLLER, "eks:UpdateAccessEntry", ENTRY))
        self.assertFalse(allows(ENROLLER, "eks:DeleteAccessEntry", ENTRY.replace("spillway", "evil-spillway")))

    def test_deployer_touches_only_the_stacks_roles(self) -> None:
        admin = {"iam:PolicyARN": "arn:aws:iam::aws:policy/AdministratorAccess"}
        self.assertTrue(allows(DEPLOYERS, "iam:AttachRolePolicy", ROLE, **{"iam:PolicyARN": OWN}))
        self.assertFalse(allows(DEPLOYERS, "iam:AttachRolePolicy", ROLE, **admin))
        self.assertTrue(allows(DEPLOYERS, "iam:PutRolePolicy", ROLE))
        for name in ("not-spillway-admin", "platform/spillway-admin"):
            self.assertFalse(allows(DEPLOYERS, "iam:PutRolePolicy", role(name)))
        for service, taken in (("lambda.amazonaws.com", True), ("ec2.amazonaws.com", False)):
            self.assertEqual(allows(DEPLOYERS, "iam:PassRole", ROLE, **{"iam:PassedToService": service}), taken)

    def test_deployer_enters_no_cluster(self) -> None:
        self.assertFalse(allows(DEPLOYERS, "eks:CreateAccessEntry", CLUSTER))
        for action in ("UpdateAccessEntry", "DeleteAccessEntry", "AssociateAccessPolicy"):
            self.assertFalse(allows(DEPLOYERS, f"eks:{action}", ENTRY), action)

    def test_required_boundary_is_on_each_role(self) -> None:
        condition = POLICIES["require-boundary"]["Statement"][0]["Condition"]["StringNotEquals"]
        required = (*DEPLOYERS, "require-boundary")
        for action in ("iam:CreateRole", "iam:PutRolePolicy", "iam:UpdateAssumeRolePolicy"):
            for given in (condition, {"iam:PermissionsBoundary": OWN}, {}):
                self.assertEqual(allows(required, action, ROLE, **given), given is condition, (action, given))
        self.assertFalse(allows(required, "iam:DeleteRolePermissionsBoundary", ROLE, **condition))

    def test_guard_lets_only_those_whose_work_it_is(self) -> None:
        rule = f"arn:aws:events:us-east-1:{ACCOUNT}:rule/spillway-DrainInterruption-1"
        passed = {"iam:PassedToService": "lambda.amazonaws.com"}
        owner = {"aws:TagKeys": ["team", "karpenter.sh/nodepool"]}
        makers = ("NODE-MAKERS", "DEPLOYERS")
        invokers = ("spillway-DrainRole-1", "spillway-SchedulesRole-1", "OPERATORS")
        for may, actions, resource, context in (
            (invokers, ["lambda:InvokeFunction", "lambda:InvokeAsync"], FUNCTION, {}),
            (("DEPLOYERS",), ["events:PutRule", "events:PutTargets", "events:DisableRule"], rule, {}),
            (("spillway-DrainRole-1", "DEPLOYERS"), ["iam:PassRole"], ROLE, passed),
            (("DEPLOYERS",), ["iam:UpdateAssumeRolePolicy"], ROLE, {}),
            (makers, ["ec2:CreateTags", "ec2:DeleteTags"], INSTANCE, owner),
            # A group hands its tags to the instances that it launches.
            (makers, ["autoscaling:CreateAutoScalingGroup", "autoscaling:DeleteTags"], GROUP, owner),
            # Other functions, and what tools/spillway enroll marks a group by.
            (("developer",), ["lambda:InvokeFunction"], FUNCTION.replace("spillway-", "shop-"), {}),
            (("developer",), ["autoscaling:CreateOrUpdateTags"], GROUP, {"aws:TagKeys": ["team", "spillway/enrolled"]}),
        ):
            for name in (*may, "developer"):
                for action in actions:
                    with self.subTest(action=action, who=name):
                        who = {"aws:PrincipalArn": role(name)}
                        self.assertEqual(allows(("guard-scp",), action, resource, name, **who, **context), name in may)


if __name__ == "__main__":
    unittest.main()
