"""A call is let through by the roles of the product's own template, and denied as AWS denies it."""

import unittest
from typing import Any

from botocore.exceptions import ClientError

from bed_aws.evaluator import Asked, Evaluator, Unjudged
from bed_aws.iam import Iam
from bed_aws.template import read
from tests.side import ACCOUNT, REGION, TEMPLATE, OnTheSide, bed, moto, state

WHERE = f"{REGION}:{ACCOUNT}"
# How each service words a denial.
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
HOOK_CALLS = ("complete_lifecycle_action", "record_lifecycle_action_heartbeat")


class TheRoles(OnTheSide):
    def code(self, service: str, call: str, region: str = REGION, **asked: Any) -> str:
        """The error of a call of the drainer, which may be denied or find nothing."""
        try:
            getattr(self.client(service, region), call)(**asked)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return ""

    def deploy(self, **variables: str) -> None:
        asked = {"role": "spillway-drain", "session": "drain-1", "variables": variables}
        self.credentials = bed("credentials_of_function", **asked)

    def hook_call(self, call: str, group: str) -> str:
        result = {"LifecycleActionResult": "CONTINUE"} if call == HOOK_CALLS[0] else {}
        of = {"AutoScalingGroupName": group, "LifecycleHookName": "drain", "InstanceId": "i-0123456789abcdef0"}
        return self.code("autoscaling", call, **of, **result)

    def test_call_beyond_the_role_is_denied_in_the_services_words(self) -> None:
        self.deploy()
        group = bed("variables")["SPILLWAY_SCHEDULES"].split()[0]
        entry = {"Source": "spillway", "DetailType": "Spillway Receipt", "Detail": "{}"}
        target = {"Arn": f"arn:aws:lambda:{WHERE}:function:drain-1", "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/admin"}
        at = {"ScheduleExpression": "at(2100-01-01T00:00:00)", "FlexibleTimeWindow": {"Mode": "OFF"}}
        schedule = {"Name": "i-1", "GroupName": group, **at, "Target": target}
        for code, service, call, asked in (
            ("UnauthorizedOperation", "ec2", "describe_instances", {"region": "eu-west-1"}),
            ("UnauthorizedOperation", "ec2", "terminate_instances", {"InstanceIds": ["i-0123456789abcdef0"]}),
            ("AccessDenied", "autoscaling", "describe_tags", {}),
            ("AccessDeniedException", "lambda", "invoke", {"FunctionName": "other"}),
            ("AccessDeniedException", "scheduler", "delete_schedule", {"Name": "i-1", "GroupName": "default"}),
            ("AccessDeniedException", "scheduler", "create_schedule", schedule),
            ("", "events", "put_events", {"Entries": [entry]}),
            *(
                ("AccessDeniedException", "events", "put_events", {"Entries": [entry, {**entry, **other}]})
                for other in ({"Source": "aws.ec2"}, {"DetailType": "Another"}, {"EventBusName": "another"})
            ),
        ):
            with self.subTest(call=call, asked=asked):
                self.assertEqual(self.code(service, call, **asked), code)

    def test_named_clusters_and_the_doctors_alone_are_described(self) -> None:
        self.deploy(SPILLWAY_CLUSTERS="prod, test")
        names = ("prod", "test", "spillway-doctor-asks-for-nothing", "production", "other", ",")
        codes = [self.code("eks", "describe_cluster", name=name) for name in names]
        self.assertEqual(codes, ["ResourceNotFoundException"] * 3 + ["AccessDeniedException"] * 3)

    def test_hooks_of_tagged_groups_alone_are_completed(self) -> None:
        bed("put_group_with_tags", name="tagged", hooks=[], tags={"team": "shop", "env": "prod"})
        bed("put_group_with_tags", name="other", hooks=[], tags={"team": "kitchen"})
        groups = ("tagged", "other", "unknown")
        for tag, denied in (("", [False] * 3), ("team=shop", [False, True, True])):
            self.deploy(SPILLWAY_HOOK_GROUP_TAG=tag)
            for call in HOOK_CALLS:
                self.assertEqual([self.hook_call(call, group) in DENIED for group in groups], denied)

    def test_instances_are_replaced_in_tagged_groups_alone(self) -> None:
        instances = []
        for value in ("true", "false"):
            bed("put_group_with_tags", name=value, hooks=[], tags={"spillway:replace": value})
            instances.append(bed("launch", group=value)["instance_id"])
        for replace, denied in (("off", [True, True, True]), ("spot", [False, True, False])):
            self.deploy(SPILLWAY_REPLACE=replace)
            call, keep = "terminate_instance_in_auto_scaling_group", {"ShouldDecrementDesiredCapacity": False}
            codes = [self.code("autoscaling", call, InstanceId=one, **keep) for one in instances]
            codes.append(self.code("ec2", "describe_spot_instance_requests", SpotInstanceRequestIds=[]))
            self.assertEqual([code in DENIED for code in codes], denied)

    def test_scheduler_invokes_only_the_function_of_its_stack(self) -> None:
        self.deploy()
        function, key = f"arn:aws:lambda:{WHERE}:function:", self.credentials["access_key_id"]
        self.assertTrue(state.iam.may_schedule(key, f"{function}drain-1"))
        self.assertFalse(state.iam.may_schedule(key, f"{function}drain-2"))

    def test_handed_in_roles_reach_functions_of_their_stack_alone(self) -> None:
        iam = Iam(state.template, moto)
        iam.hand_in(read(TEMPLATE.parent / "deploy/cloudformation/roles.yaml"), "administrators")
        for name, may in (("spillway-Drain-1", True), ("another-Drain-1", False)):
            iam.deploy(name, "spillway-drain", name, {})
            self.assertEqual(iam.may_schedule(name, moto.function(name)), may)


class TheEvaluator(unittest.TestCase):
    def test_condition_key_that_aws_does_not_list_is_an_error(self) -> None:
        everything = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
        policies = [{"name": "all", "policy": {"Version": "2012-10-17", "Statement": everything}}]
        entry = f"arn:aws:eks:{WHERE}:access-entry/prod/role/{ACCOUNT}/spillway-drain/1"
        # A key of the resource type, whose value would be the old groups.
        groups = {"eks:kubernetesGroups": ["spillway"]}
        evaluator = Evaluator(ACCOUNT)
        unlisted = "AWS lists no condition key eks:kubernetesGroups for eks:UpdateAccessEntry"
        with self.assertRaisesRegex(Unjudged, unlisted):
            evaluator.allows("person", policies, Asked("eks:UpdateAccessEntry", entry, groups))
        self.assertTrue(evaluator.allows("person", policies, Asked("eks:UpdateAccessEntry", entry)))
        cluster = Asked("eks:CreateAccessEntry", f"arn:aws:eks:{WHERE}:cluster/prod", groups)
        self.assertTrue(evaluator.allows("person", policies, cluster))
