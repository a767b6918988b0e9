"""Requests and answers that AWS' models do not have are found, each with its place."""

import json
import unittest
from typing import Any

from moto.core.request import Request
from werkzeug.test import EnvironBuilder

from bed_aws.call import Call
from bed_aws.models import answer, request_problems

TARGETS = {"events": "AWSEvents", "sqs": "AmazonSQS", "ssm": "AmazonSSM"}


def call(service: str, action: str, path: str = "/", method: str = "POST", **body: Any) -> Call:
    if service in TARGETS:
        headers = {"X-Amz-Target": f"{TARGETS[service]}.{action}"}
        body = {"headers": headers, "content_type": "application/x-amz-json-1.1", "data": json.dumps(body)}
    request = Request(EnvironBuilder(path=path, method=method, **body).get_environ())
    request.get_data(cache=True)
    return Call(request, service, "AKIA", "us-east-1")


def query(service: str, action: str, **members: str) -> Call:
    return call(service, action, data={"Action": action, "Version": "1", **members})


class Requests(unittest.TestCase):
    def test_request_of_the_model_is_let_through(self) -> None:
        group = {"AutoScalingGroupName": "g", "LifecycleHookName": "h", "InstanceId": "i-0123456789abcdef0"}
        for sound in (
            query("ec2", "DescribeInstances", **{"InstanceId.1": "i-1", "DryRun": "true", "Filter.1.Name": "n"}),
            query("autoscaling", "RecordLifecycleActionHeartbeat", **group),
            query("elasticloadbalancing", "DescribeTags", **{"ResourceArns.member.1": "arn"}),
            call("eks", "DescribeCluster", path="/clusters/prod", method="GET"),
            call("events", "PutEvents", Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}"}]),
            call("sqs", "ReceiveMessage", QueueUrl="q", AttributeNames=["SentTimestamp"]),
            call("lambda", "Invoke", path="/2015-03-31/functions/f/invocations", data=b'{"any": 1}'),
        ):
            with self.subTest(action=sound.action):
                self.assertEqual(request_problems(sound), [])

    def test_unknown_missing_or_mistyped_member_is_found(self) -> None:
        entry = {"Source": "s", "DetailType": "d", "detail": "{}"}
        for what, of in (
            ("InstanceID", query("ec2", "DescribeInstances", **{"InstanceID.1": "i-1"})),
            ("Entries.0.detail", call("events", "PutEvents", Entries=[entry])),
            ("lifecycleHookName", query("autoscaling", "RecordLifecycleActionHeartbeat", AutoScalingGroupName="g")),
            ("entries", call("events", "PutEvents", Entries={})),
        ):
            found = request_problems(of)
            self.assertTrue(any(what in one for one in found), found)


class Answers(unittest.TestCase):
    def test_unknown_or_mistyped_member_of_an_answer_is_found(self) -> None:
        cluster = call("eks", "DescribeCluster", path="/clusters/prod", method="GET")
        sound = {"cluster": {"name": "prod", "createdAt": 1.0}}
        self.assertEqual(json.loads(answer(cluster, sound).get_data()), sound)
        for broken in ({"Name": "prod"}, {"name": ["prod"]}):
            with self.assertRaisesRegex(TypeError, "the stand-in for eks:DescribeCluster"):
                answer(cluster, {"cluster": broken})
