"""What comes too fast or is too large is turned away, as AWS does it."""

import json
import unittest
from urllib.parse import urlencode

from botocore.exceptions import ClientError
from werkzeug import Request

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.limits import LIMITS, Bucket, Limits
from tests.side import OnTheSide


FILTERED = "ec2:DescribeInstances"
BY_IDS = "ec2:DescribeInstances by ids alone"


def describe(key: str, **parameters: str) -> Call:
    request = Request({"QUERY_STRING": urlencode(parameters), "REQUEST_METHOD": "GET"})
    return Call(request, "ec2", "DescribeInstances", key, "us-east-1")


class TheBucket(unittest.TestCase):
    def test_it_is_full_at_first_and_fills_again_with_time(self) -> None:
        bucket = Bucket(LIMITS[FILTERED], at=0.0)
        self.assertEqual(sum(bucket.take(0.0) for _ in range(150)), 100)
        self.assertEqual(sum(bucket.take(1.0) for _ in range(100)), 20)
        self.assertEqual(sum(bucket.take(1000.0) for _ in range(150)), 100)

    def taken(self, limits: Limits, call: Call, tries: int = 200) -> int:
        """How many calls in a row are not turned away."""
        for count in range(tries):
            try:
                limits.check(call)
            except AwsError as error:
                self.assertIn(error.code, ("RequestLimitExceeded", "ThrottlingException"))
                return count
        return tries

    def test_calls_with_a_filter_or_pages_have_a_bucket_apart(self) -> None:
        limits = Limits(now=lambda: 0.0)
        ids = {"InstanceId.1": "i-1"}
        self.assertEqual(self.taken(limits, describe("one", **ids)), 50)
        self.assertEqual(self.taken(limits, describe("one", **ids, **{"Filter.1.Name": "instance-state-name"})), 100)
        self.assertEqual(self.taken(limits, describe("one", MaxResults="5")), 0)
        self.assertEqual(self.taken(limits, describe("another", MaxResults="5")), 100)

    def test_a_limit_of_its_own_replaces_the_usual_one(self) -> None:
        limits = Limits(now=lambda: 0.0)
        limits.put("one", BY_IDS, 1, 0)
        self.assertEqual(self.taken(limits, describe("one")), 1)
        self.assertEqual(self.taken(limits, describe("another")), 50)

    def test_parameter_store_reads_share_one_bucket(self) -> None:
        limits = Limits(now=lambda: 0.0)
        one, ten, put = (Call(Request({}), "ssm", name, "one", "us-east-1") for name in ("GetParameter", "GetParameters", "PutParameter"))
        self.assertEqual(self.taken(limits, one, 30), 30)
        self.assertEqual(self.taken(limits, ten), 10)
        self.assertEqual(self.taken(limits, put), 3)

    def test_eks_describes_ten_clusters_a_second(self) -> None:
        limits = Limits(now=lambda: 0.0)
        call = Call(Request({}), "eks", "DescribeCluster", "one", "us-east-1")
        for _ in range(10):
            limits.check(call)
        with self.assertRaises(AwsError) as caught:
            limits.check(call)
        self.assertEqual((caught.exception.status, caught.exception.code), (429, "ThrottlingException"))


class WhatIsPut(OnTheSide):
    def put(self, *entries: dict[str, str]) -> list[dict[str, str]]:
        return self.client("events").put_events(Entries=list(entries))["Entries"]

    def assert_refused(self, *entries: dict[str, str]) -> None:
        with self.assertRaises(ClientError) as caught:
            self.put(*entries)
        self.assertEqual(caught.exception.response["Error"]["Code"], "ValidationException")

    def test_eleven_events_in_one_call_are_all_refused(self) -> None:
        entry = {"Source": "spillway", "DetailType": "A", "Detail": "{}"}
        self.assertTrue(all("EventId" in one for one in self.put(*[entry] * 10)))
        self.assert_refused(*[entry] * 11)

    def test_what_is_too_large_together_is_refused(self) -> None:
        entry = {"Source": "spillway", "DetailType": "A", "Detail": json.dumps({"x": "x" * 132_000})}
        self.put(entry)
        self.assert_refused(entry, entry)

    def test_nobody_speaks_for_aws(self) -> None:
        ours = {"Source": "spillway", "DetailType": "A", "Detail": "{}"}
        theirs, taken = self.put({**ours, "Source": "aws.ec2"}, ours)
        self.assertEqual(theirs["ErrorCode"], "NotAuthorizedForSourceException")
        self.assertIn("EventId", taken)

