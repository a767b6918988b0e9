"""deploy/iam/deployer-policy.json allows what CloudFormation needs for this template, by its own schemas, and no more. Of the
enroller's policy tests/rights/least.py takes each right away.
"""

import json
import re
import unittest
from pathlib import Path
from typing import Any

import cfnlint
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from test_template import RESOURCES, ROOT

IAM = json.loads((Path(cfnlint.__file__).parent / "data/AdditionalSpecs/Policies.json").read_text())
POLICY = json.loads((ROOT / "deploy/iam/deployer-policy.json").read_text())
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
    "access policies of EKS beside the group": r"eks:(Dis)?[Aa]ssociateAccessPolicy",
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
    for kind in {resource["Type"] for resource in RESOURCES.values()}:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
        for name, handler in schema["handlers"].items():
            if name != "list":
                found |= set(handler["permissions"])
    return found


def not_used(action: str) -> bool:
    return any(re.fullmatch(pattern, action) for pattern in NOT_USED.values())


def statements() -> dict[str, dict[str, Any]]:
    return {statement["Sid"]: statement for statement in POLICY["Statement"]}


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

    def test_every_exception_is_one(self) -> None:
        for why, pattern in NOT_USED.items():
            self.assertTrue(any(re.fullmatch(pattern, action) for action in handlers()), why)

    def test_may_pass_roles_to_lambda_alone(self) -> None:
        (statement,) = (one for one in statements().values() if "iam:PassRole" in one["Action"])
        self.assertEqual(statement["Action"], ["iam:PassRole"])
        self.assertEqual(statement["Condition"], {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}})

    def test_each_action_is_bound_to_resources_if_and_only_if_aws_can_do_that(self) -> None:
        for name, one in statements().items():
            for action in one["Action"]:
                with self.subTest(statement=name, action=action):
                    self.assertEqual(one["Resource"] != "*", has_resources(action))

    def test_it_is_as_short_as_a_managed_policy_may_be(self) -> None:
        self.assertLessEqual(len(json.dumps(POLICY, separators=(",", ":"))), 6144)

    def test_and_the_enroller_likewise(self) -> None:
        for one in json.loads((ROOT / "deploy/iam/enroller-policy.json").read_text())["Statement"]:
            for action in one["Action"]:
                with self.subTest(statement=one["Sid"], action=action):
                    self.assertEqual(one["Resource"] != "*", has_resources(action))


if __name__ == "__main__":
    unittest.main()
