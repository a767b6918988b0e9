"""What happens to every AWS call: who signed it, what the journal keeps, how a test breaks it."""

import inspect
import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any
from unittest.mock import patch

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from tests.side import OnTheSide, Refused, app, bed

DESCRIBE = {
    "ec2": lambda client: client.describe_instances(),
    "eks": lambda client: client.describe_cluster(name="shop"),
    "autoscaling": lambda client: client.describe_lifecycle_hooks(AutoScalingGroupName="shop"),
}


class Signatures(OnTheSide):
    def refusal(self, service: str, **changed: str) -> tuple[int, str]:
        with self.assertRaises(ClientError) as caught:
            DESCRIBE[service](self.client(service, **changed))
        answer: dict[str, Any] = caught.exception.response
        return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]

    def test_a_wrong_secret_is_refused(self) -> None:
        wrong = {"aws_secret_access_key": "wrong"}
        self.assertEqual(self.refusal("ec2", **wrong), (401, "AuthFailure"))
        self.assertEqual(self.refusal("eks", **wrong), (403, "InvalidSignatureException"))
        self.assertEqual(self.refusal("autoscaling", **wrong), (403, "SignatureDoesNotMatch"))

    def test_an_unknown_key_is_refused(self) -> None:
        unknown = {"aws_access_key_id": "ASIAUNKNOWN"}
        self.assertEqual(self.refusal("ec2", **unknown), (401, "AuthFailure"))
        self.assertEqual(self.refusal("eks", **unknown), (403, "UnrecognizedClientException"))
        self.assertEqual(self.refusal("autoscaling", **unknown), (403, "InvalidClientTokenId"))

    def test_another_session_token_is_refused(self) -> None:
        self.assertEqual(self.refusal("autoscaling", aws_session_token="x"), (403, "InvalidClientTokenId"))

    def test_a_good_signature_passes(self) -> None:
        bed("POST", "clusters", name="shop", endpoint="https://127.0.0.1:1", ca="Y2E=")
        bed("POST", "groups", name="shop", hooks=[])
        for service, describe in DESCRIBE.items():
            describe(self.client(service))


class WhatIsRepeated(OnTheSide):
    def test_a_second_call_finds_out_nothing_that_the_first_did(self) -> None:
        ec2 = self.client("ec2")
        ec2.describe_instances()
        with (
            patch.object(os, "listdir", wraps=os.listdir) as folders_read,
            patch.object(inspect, "getmembers", wraps=inspect.getmembers) as classes_listed,
        ):
            ec2.describe_instances()
        folders_read.assert_not_called()
        classes_listed.assert_not_called()


class Turns(OnTheSide):
    """One turn at a time, which the test holds until it lets go."""

    def setUp(self) -> None:
        super().setUp()
        self.let_go = Event()
        turns = ThreadPoolExecutor(1)
        patched = patch.object(app, "_turns", turns)
        patched.start()
        self.addCleanup(patched.stop)
        self.addCleanup(self.let_go.set)
        turns.submit(self.let_go.wait)

    def state_of(self, instance_id: str) -> str:
        found = self.client("ec2").describe_instances(InstanceIds=[instance_id])
        return str(found["Reservations"][0]["Instances"][0]["State"]["Name"])

    def test_a_call_whose_caller_has_given_up_does_nothing(self) -> None:
        instance_id = self.instance()
        with self.assertRaises(ReadTimeoutError):
            self.client("ec2", read_timeout=0.2).terminate_instances(InstanceIds=[instance_id])
        self.let_go.set()
        self.assertEqual(self.state_of(instance_id), "running")

    def test_who_waits_for_a_message_needs_no_turn(self) -> None:
        sqs = self.client("sqs", read_timeout=5)
        with patch.object(app, "_turns", ThreadPoolExecutor(1)):
            queue = sqs.create_queue(QueueName=self.session[-40:].replace(".", "-"))["QueueUrl"]
        self.assertNotIn("Messages", sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=0))


class Journal(OnTheSide):
    def test_calls_are_kept_by_caller(self) -> None:
        ec2, eks = self.client("ec2"), self.client("eks")
        ec2.describe_instances()
        with self.assertRaises(ClientError):
            eks.describe_cluster(name="nowhere")
        with self.assertRaises(ClientError):
            eks.create_access_entry(clusterName="nowhere", principalArn="arn:aws:iam::123456789012:role/x")
        calls = bed("GET", f"calls?access_key_id={self.key}")
        self.assertEqual(
            [(call["service"], call["action"], call["status"], call["error_code"]) for call in calls[:2]],
            [("ec2", "DescribeInstances", 200, None), ("eks", "DescribeCluster", 404, "ResourceNotFoundException")],
        )
        self.assertEqual(calls[2]["action"], "CreateAccessEntry")
        self.assertEqual(bed("GET", "calls?access_key_id=ASIANOBODY"), [])


class Faults(OnTheSide):
    def fault(self, **fault: Any) -> None:
        bed("POST", "faults", access_key_id=self.key, service="ec2", action="DescribeInstances", **fault)

    def test_a_call_fails_as_often_as_told(self) -> None:
        self.fault(times=1, status=503, code="RequestLimitExceeded", message="Request limit exceeded.")
        with self.assertRaisesRegex(ClientError, "RequestLimitExceeded.*Request limit exceeded"):
            self.client("ec2").describe_instances()
        self.client("ec2").describe_instances()

    def test_a_call_is_late(self) -> None:
        self.fault(delay_ms=200)
        started = time.monotonic()
        self.client("ec2").describe_instances()
        self.assertGreaterEqual(time.monotonic() - started, 0.2)

    def test_a_connection_is_dropped_until_the_faults_are_cleared(self) -> None:
        self.fault(reset=True)
        with self.assertRaises(ConnectionClosedError):
            self.client("ec2").describe_instances()
        bed("DELETE", f"faults?access_key_id={self.key}")
        self.client("ec2").describe_instances()


class Clusters(OnTheSide):
    def test_one_caller_sees_another_endpoint(self) -> None:
        bed("POST", "clusters", name="shop", endpoint="https://127.0.0.1:1", ca="Y2E=")
        bed("POST", "overrides", access_key_id=self.key, cluster="shop", endpoint="https://127.0.0.1:2")
        own = self.client("eks").describe_cluster(name="shop")["cluster"]
        self.assertEqual((own["endpoint"], own["certificateAuthority"]["data"]), ("https://127.0.0.1:2", "Y2E="))
        self.setUp()
        self.assertEqual(self.client("eks").describe_cluster(name="shop")["cluster"]["endpoint"], "https://127.0.0.1:1")


class OwnApi(OnTheSide):
    def test_a_field_too_many_or_too_few_is_named(self) -> None:
        with self.assertRaisesRegex(Refused, "400: missing a required argument: 'session'"):
            bed("POST", "credentials", role="x")
        with self.assertRaisesRegex(Refused, "400: got an unexpected keyword argument 'zones'"):
            bed("POST", "instances", zones="x")
        with self.assertRaisesRegex(Refused, "404"):
            bed("GET", "nothing")

    def test_failures_are_kept_and_looked_at_twice(self) -> None:
        bed("POST", "failures", body="what went wrong")
        self.assertIn("what went wrong", bed("GET", "failures"))
        self.assertIn("what went wrong", bed("GET", "failures"))
