"""A call is let through by the roles of the product's own template, and denied as AWS denies it."""

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from werkzeug import Request
from werkzeug.test import EnvironBuilder

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.evaluator import Asked, Evaluator, Unjudged
from bed_aws.iam import Iam
from bed_aws.rights import NoSuchRight
from tests.side import REGION, moto

TEMPLATE = Path(__file__).resolve().parents[4] / "template.yaml"
WHERE = f"{REGION}:{moto.account}"


class TheRoles(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.record = Path(folder.name) / "rights.jsonl"
        self.iam = Iam(TEMPLATE, moto, self.record)
        self.caller = moto.sts.assume_role(REGION, "drain-1", f"arn:aws:iam::{moto.account}:role/spillway-drain", "", 900, "")
        self.groups = {"prod-nodes": {"team": "shop", "env": "prod"}, "other-nodes": {"team": "kitchen"}}
        self.deploy()

    def tags(self, group: str) -> dict[str, str]:
        return self.groups.get(group, {})

    def deploy(self, role: str = "spillway-drain", **variables: str) -> None:
        self.iam.deploy(self.caller.access_key_id, role, "drain-1", variables)

    def call(self, service: str, action: str, path: str = "/", region: str = REGION, **sent: Any) -> None:
        body = {"json": sent} if service in ("events", "scheduler", "ssm", "secretsmanager") else {"data": sent}
        request = Request(EnvironBuilder(path=path, method="POST", **body).get_environ())
        request.get_data(cache=True)
        self.iam.check(Call(request, service, action, self.caller.access_key_id, region), self.caller, self.tags)

    def assert_denied(self, code: str, service: str, action: str, **call: Any) -> None:
        with self.assertRaises(AwsError) as caught:
            self.call(service, action, **call)
        self.assertEqual(caught.exception.code, code)
        self.assertIn(f"is not authorized to perform: {service}:", caught.exception.message.replace("iam:", "scheduler:"))

    def test_what_goes_beyond_it_is_denied_in_the_services_own_words(self) -> None:
        self.assert_denied("UnauthorizedOperation", "ec2", "DescribeInstances", region="eu-west-1")
        self.assert_denied("AccessDenied", "autoscaling", "DescribeTags")
        self.assert_denied("AccessDeniedException", "lambda", "Invoke", path="/2015-03-31/functions/other/invocations")
        entry = {"Source": "spillway", "DetailType": "Spillway Receipt"}
        for other in ({"Source": "aws.ec2"}, {"DetailType": "Another"}, {"EventBusName": "another"}):
            self.assert_denied("AccessDeniedException", "events", "PutEvents", Entries=[entry, {**entry, **other}])
        group = {"path": "/schedules/i-1", "GroupName": "spillway-Schedules-1A2B3C4D5E6F"}
        self.assert_denied("AccessDeniedException", "scheduler", "DeleteSchedule", path="/schedules/i-1", GroupName="default")
        another = {"RoleArn": f"arn:aws:iam::{moto.account}:role/admin"}
        self.assert_denied("AccessDeniedException", "scheduler", "CreateSchedule", **group, Target=another)

    def test_only_named_clusters_and_the_doctors_are_described(self) -> None:
        self.deploy(SPILLWAY_CLUSTERS="prod, test")
        for cluster in ("prod", "test", "spillway-doctor-asks-for-nothing"):
            self.call("eks", "DescribeCluster", path=f"/clusters/{cluster}")
        for cluster in ("production", "other", ","):
            self.assert_denied("AccessDeniedException", "eks", "DescribeCluster", path=f"/clusters/{cluster}")

    def test_only_hooks_of_tagged_groups_are_completed(self) -> None:
        calls = ("CompleteLifecycleAction", "RecordLifecycleActionHeartbeat")
        for call in calls:
            self.call("autoscaling", call, AutoScalingGroupName="other-nodes")
        self.deploy(SPILLWAY_HOOK_GROUP_TAG="team=shop")
        for call in calls:
            self.call("autoscaling", call, AutoScalingGroupName="prod-nodes")
            for group in ("other-nodes", "untagged"):
                self.assert_denied("AccessDenied", "autoscaling", call, AutoScalingGroupName=group)

    def test_instances_are_replaced_in_tagged_groups_alone(self) -> None:
        self.groups = {"i-1": {"spillway:replace": "true"}, "i-2": {"spillway:replace": "false"}, "i-3": {}}
        for value in (None, "off"):
            self.deploy(**({"SPILLWAY_REPLACE": value} if value else {}))
            self.assert_denied("AccessDenied", "autoscaling", "TerminateInstanceInAutoScalingGroup", InstanceId="i-1")
            self.assert_denied("UnauthorizedOperation", "ec2", "DescribeSpotInstanceRequests")
        self.deploy(SPILLWAY_REPLACE="spot")
        self.call("autoscaling", "TerminateInstanceInAutoScalingGroup", InstanceId="i-1")
        self.call("ec2", "DescribeSpotInstanceRequests")
        for instance in ("i-2", "i-3"):
            self.assert_denied("AccessDenied", "autoscaling", "TerminateInstanceInAutoScalingGroup", InstanceId=instance)

    def test_scheduler_invokes_only_the_function_of_its_stack(self) -> None:
        key, function = self.caller.access_key_id, f"arn:aws:lambda:{WHERE}:function:"
        self.assertTrue(self.iam.may_schedule(key, f"{function}drain-1"))
        self.assertFalse(self.iam.may_schedule(key, f"{function}drain-2"))

    def test_call_without_a_known_right_is_an_error(self) -> None:
        with self.assertRaises(NoSuchRight):
            self.call("ec2", "TerminateInstances")
        with self.assertRaises(Unjudged):
            self.iam.may_schedule(self.caller.access_key_id, "no ARN")

    def test_condition_key_that_aws_does_not_list_is_an_error(self) -> None:
        entry = f"arn:aws:eks:{WHERE}:access-entry/prod/role/{moto.account}/spillway-drain/1"
        everything = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
        policies = [{"name": "all", "policy": {"Version": "2012-10-17", "Statement": everything}}]
        # A key of the resource type, whose value would be the old groups.
        groups = {"eks:kubernetesGroups": ["spillway"]}
        evaluator = Evaluator(moto.account)
        with self.assertRaisesRegex(Unjudged, "AWS lists no condition key eks:kubernetesGroups for eks:UpdateAccessEntry"):
            evaluator.allows("person", policies, Asked("eks:UpdateAccessEntry", entry, groups))
        self.assertTrue(evaluator.allows("person", policies, Asked("eks:UpdateAccessEntry", entry)))
        cluster = Asked("eks:CreateAccessEntry", f"arn:aws:eks:{WHERE}:cluster/prod", groups)
        self.assertTrue(evaluator.allows("person", policies, cluster))

    def test_what_was_asked_for_is_written_down_once(self) -> None:
        for _ in range(2):
            self.call("ec2", "DescribeInstances")
        (line,) = self.record.read_text().splitlines()
        asked = json.loads(line)
        self.assertEqual((asked["role"], asked["action"], asked["allowed"]), ("DrainRole", "ec2:DescribeInstances", True))
