"""Requests and answers that AWS' models do not have are found, each with its place."""

import json
import unittest
from typing import Any

from werkzeug import Request, Response
from werkzeug.test import EnvironBuilder

from bed_aws.call import Call
from bed_aws.models import answer_problems, request_problems


def call(service: str, action: str, path: str = "/", method: str = "POST", **body: Any) -> Call:
    request = Request(EnvironBuilder(path=path, method=method, **body).get_environ())
    request.get_data(cache=True)
    return Call(request, service, action, "AKIA", "us-east-1")


def query(service: str, action: str, **members: str) -> Call:
    return call(service, action, data={"Action": action, "Version": "1", **members})


class Requests(unittest.TestCase):
    def assert_problem(self, what: str, of: Call) -> None:
        found = request_problems(of)
        self.assertTrue(any(what in one for one in found), found)

    def test_what_the_models_have_is_let_through(self) -> None:
        group = {"AutoScalingGroupName": "g", "LifecycleHookName": "h", "InstanceId": "i-0123456789abcdef0"}
        for sound in (
            query("ec2", "DescribeInstances", **{"InstanceId.1": "i-1", "DryRun": "true", "Filter.1.Name": "n"}),
            query("autoscaling", "RecordLifecycleActionHeartbeat", **group),
            query("elasticloadbalancing", "DescribeTags", **{"ResourceArns.member.1": "arn"}),
            call("eks", "DescribeCluster", path="/clusters/prod", method="GET"),
            call("events", "PutEvents", json={"Entries": [{"Source": "s", "DetailType": "d", "Detail": "{}"}]}),
            call("sqs", "ReceiveMessage", json={"QueueUrl": "q", "AttributeNames": ["SentTimestamp"]}),
            call("lambda", "Invoke", path="/2015-03-31/functions/f/invocations", data=b'{"any": 1}'),
        ):
            with self.subTest(action=sound.action):
                self.assertEqual(request_problems(sound), [])

    def test_a_member_that_there_is_not_is_found(self) -> None:
        self.assert_problem("InstanceID", query("ec2", "DescribeInstances", **{"InstanceID.1": "i-1"}))
        entry = {"Source": "s", "DetailType": "d", "detail": "{}"}
        self.assert_problem("Entries.0.detail", call("events", "PutEvents", json={"Entries": [entry]}))

    def test_missing_or_mistyped_answer_member_is_found(self) -> None:
        self.assert_problem("lifecycleHookName", query("autoscaling", "RecordLifecycleActionHeartbeat", AutoScalingGroupName="g"))
        self.assert_problem("Entries", call("events", "PutEvents", json={"Entries": {}}))


class Answers(unittest.TestCase):
    def problems(self, of: Call, answer: Any) -> list[str]:
        return answer_problems(of, Response(json.dumps(answer), mimetype="application/json"))

    def test_what_the_models_have_is_let_through(self) -> None:
        cluster = call("eks", "DescribeCluster", path="/clusters/prod", method="GET")
        self.assertEqual(self.problems(cluster, {"cluster": {"name": "prod", "createdAt": 1.0}}), [])

    def test_unknown_or_mistyped_request_member_is_found(self) -> None:
        cluster = call("eks", "DescribeCluster", path="/clusters/prod", method="GET")
        self.assertIn("cluster.Name", self.problems(cluster, {"cluster": {"Name": "prod"}})[0])
        self.assertTrue(self.problems(cluster, {"cluster": {"name": ["prod"]}}))
