"""The deployer's policies in deploy/iam allow what CloudFormation needs for this template, by its own schemas, and no more. Of the
enroller's policy tests/rights/least.py takes each right away.
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


def not_used(action: str) -> bool:
    return any(re.fullmatch(pattern, action) for pattern in NOT_USED.values())


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
        self.assertEqual(set(allowed), {action for action in handlers() if not not_used(action)})

    def test_may_pass_roles_to_lambda_alone(self) -> None:
        (statement,) = (one for one in statements().values() if "iam:PassRole" in one["Action"])
        self.assertEqual(statement["Action"], ["iam:PassRole"])
        self.assertEqual(statement["Condition"], {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}})

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
            # A service control policy may have 5,120.
            most = 5120 if name.endswith("-scp") else 6144
            self.assertLessEqual(len(json.dumps(policy, separators=(",", ":"))), most, name)


def allows(names: tuple[str, ...], action: str, resource: str, principal: str = "somebody", **context: Any) -> bool:
    """Whether these policies let a role, as IAM evaluates them. Of a policy that only denies: whether it leaves an allowed call."""
    policies = [{"name": name, "policy": POLICIES[name]} for name in names]
    if not any(one["Effect"] == "Allow" for one in POLICIES[names[0]]["Statement"]):
        everything = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
        policies.append({"name": "all", "policy": {"Version": "2012-10-17", "Statement": everything}})
    return EVALUATOR.allows(principal, policies, Asked(action, resource, context))


ROLE = f"arn:aws:iam::{ACCOUNT}:role/spillway-DrainRole-1"
OWN = f"arn:aws:iam::{ACCOUNT}:policy/spillway-Network-1"
CLUSTER = "arn:aws:eks:us-east-1:123456789012:cluster/prod"
ENROLLER = ("enroller-policy",)


class WhatTheEnrollerMayNot(unittest.TestCase):
    def creates(self, role: str = "spillway-DrainRole-1", **more: Any) -> bool:
        principal = f"arn:aws:iam::{ACCOUNT}:role/{role}"
        entry = {"eks:accessEntryType": "STANDARD", "eks:principalArn": principal, "eks:kubernetesGroups": ["spillway"]}
        return allows(ENROLLER, "eks:CreateAccessEntry", CLUSTER, **{**entry, **more})

    def test_new_entry_is_for_a_role_of_the_stack_alone(self) -> None:
        self.assertTrue(self.creates())
        for role in ("evil-spillway-x", "me", "platform/spillway-DrainRole-1"):
            self.assertFalse(self.creates(role), role)

    def test_new_entry_has_the_group_of_the_function_alone(self) -> None:
        for groups in (["admins"], ["spillway", "admins"]):
            self.assertFalse(self.creates(**{"eks:kubernetesGroups": groups}))

    def test_new_entry_has_no_username_of_its_own(self) -> None:
        self.assertFalse(self.creates(**{"eks:username": "colleague"}))

    def test_entry_is_not_changed(self) -> None:
        entry = f"arn:aws:eks:us-east-1:{ACCOUNT}:access-entry/prod/role/{ACCOUNT}/spillway-DrainRole-1/1234"
        self.assertTrue(allows(ENROLLER, "eks:DeleteAccessEntry", entry))
        self.assertFalse(allows(ENROLLER, "eks:UpdateAccessEntry", entry))
        self.assertFalse(allows(ENROLLER, "eks:DeleteAccessEntry", entry.replace("spillway", "evil-spillway")))


class WhatTheDeployerMayNot(unittest.TestCase):
    def test_attach_another_policy_than_the_stacks(self) -> None:
        attach = "iam:AttachRolePolicy"
        self.assertTrue(allows(DEPLOYERS, attach, ROLE, **{"iam:PolicyARN": OWN}))
        self.assertFalse(allows(DEPLOYERS, attach, ROLE, **{"iam:PolicyARN": "arn:aws:iam::aws:policy/AdministratorAccess"}))

    def test_touch_a_role_that_only_has_the_name_in_its_own(self) -> None:
        self.assertTrue(allows(DEPLOYERS, "iam:PutRolePolicy", ROLE))
        for name in ("not-spillway-admin", "platform/spillway-admin"):
            self.assertFalse(allows(DEPLOYERS, "iam:PutRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/{name}"))

    def test_enter_a_cluster(self) -> None:
        entry = f"arn:aws:eks:us-east-1:{ACCOUNT}:access-entry/prod/role/{ACCOUNT}/spillway-DrainRole-1/1234"
        for action, resource in (("Create", CLUSTER), ("Update", entry), ("Delete", entry), ("AssociateAccessPolicy", entry)):
            name = action if action.startswith("Associate") else f"{action}AccessEntry"
            self.assertFalse(allows(DEPLOYERS, f"eks:{name}", resource), name)

    def test_make_a_role_without_the_boundary_where_one_is_required(self) -> None:
        boundary = POLICIES["require-boundary"]["Statement"][0]["Condition"]["StringNotEquals"]["iam:PermissionsBoundary"]
        required = (*DEPLOYERS, "require-boundary")
        for action in ("iam:CreateRole", "iam:PutRolePolicy", "iam:UpdateAssumeRolePolicy"):
            self.assertTrue(allows(required, action, ROLE, **{"iam:PermissionsBoundary": boundary}))
            self.assertFalse(allows(required, action, ROLE, **{"iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess"}))
            self.assertFalse(allows(required, action, ROLE))
        self.assertFalse(allows(required, "iam:DeleteRolePermissionsBoundary", ROLE, **{"iam:PermissionsBoundary": boundary}))


class TheGuard(unittest.TestCase):
    """deploy/iam/guard-scp.json, where everybody may everything otherwise."""

    def assert_only(self, may: tuple[str, ...], action: str, resource: str, **context: Any) -> None:
        for name in (*may, "developer"):
            arn = {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/{name}"}
            with self.subTest(action=action, who=name):
                self.assertEqual(allows(("guard-scp",), action, resource, name, **arn, **context), name in may)

    def test_only_the_stacks_roles_and_operators_invoke_the_function(self) -> None:
        function = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:spillway-Drain-1"
        for action in ("lambda:InvokeFunction", "lambda:InvokeAsync"):
            self.assert_only(("spillway-DrainRole-1", "spillway-SchedulesRole-1", "OPERATORS"), action, function)
        self.assertTrue(allows(("guard-scp",), "lambda:InvokeFunction", function.replace("spillway-", "shop-"), "developer"))

    def test_only_deployers_change_what_reaches_it(self) -> None:
        rule = f"arn:aws:events:us-east-1:{ACCOUNT}:rule/spillway-DrainInterruption-1"
        for action in ("PutRule", "PutTargets", "DisableRule"):
            self.assert_only(("DEPLOYERS",), f"events:{action}", rule)

    def test_only_deployers_hand_its_roles_to_a_service(self) -> None:
        role = f"arn:aws:iam::{ACCOUNT}:role/spillway-DrainRole-1"
        passed = {"iam:PassedToService": "lambda.amazonaws.com"}
        self.assert_only(("spillway-DrainRole-1", "DEPLOYERS"), "iam:PassRole", role, **passed)
        self.assert_only(("DEPLOYERS",), "iam:UpdateAssumeRolePolicy", role.replace("DrainRole", "SchedulesRole"))

    def test_only_who_makes_nodes_says_whose_they_are(self) -> None:
        group = f"arn:aws:autoscaling:us-east-1:{ACCOUNT}:autoScalingGroup:0:autoScalingGroupName/workers"
        of_instances = [(f"ec2:{call}", f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/i-1") for call in ("CreateTags", "DeleteTags")]
        # A group hands its tags to the instances that it launches.
        of_groups = [(f"autoscaling:{call}", group) for call in ("CreateAutoScalingGroup", "CreateOrUpdateTags", "DeleteTags")]
        for action, resource in of_instances + of_groups:
            for key in ("karpenter.sh/nodepool", "kubernetes.io/cluster/prod", "eks:nodegroup-name"):
                self.assert_only(("NODE-MAKERS", "DEPLOYERS"), action, resource, **{"aws:TagKeys": ["team", key]})
            # The last is what tools/spillway enroll marks a group by.
            team = {"aws:TagKeys": ["team", "spillway/enrolled"], "aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/developer"}
            self.assertTrue(allows(("guard-scp",), action, resource, "developer", **team))


if __name__ == "__main__":
    unittest.main()
