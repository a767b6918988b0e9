"""What comes too fast or is too large is turned away, as AWS does it."""

import json
import unittest

from botocore.exceptions import ClientError
from werkzeug import Request

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.limits import LIMITS, Bucket, Limits
from tests.side import OnTheSide


class TheBucket(unittest.TestCase):
    def test_it_is_full_at_first_and_fills_again_with_time(self) -> None:
        bucket = Bucket(LIMITS["ec2", "DescribeInstances"], at=0.0)
        self.assertEqual(sum(bucket.take(0.0) for _ in range(150)), 100)
        self.assertEqual(sum(bucket.take(1.0) for _ in range(100)), 20)
        self.assertEqual(sum(bucket.take(1000.0) for _ in range(150)), 100)

    def test_who_describes_too_fast_is_told_so_and_nobody_else(self) -> None:
        limits = Limits(now=lambda: 0.0)

        def describe(key: str) -> None:
            limits.check(Call(Request({}), "ec2", "DescribeInstances", key, "us-east-1"))

        for _ in range(100):
            describe("one")
        describe("another")
        with self.assertRaises(AwsError) as caught:
            describe("one")
        self.assertEqual(caught.exception.code, "RequestLimitExceeded")
        limits.put("one", "ec2", "DescribeInstances", 1, 0)
        describe("one")
        with self.assertRaises(AwsError):
            describe("one")

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

    def test_ten_events_are_taken_at_once_and_an_eleventh_refuses_them_all(self) -> None:
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

