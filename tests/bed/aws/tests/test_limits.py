"""What comes too fast is turned away, as AWS does it."""

import unittest

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.limits import Limits
from tests.test_models import call, query

ONE = {"InstanceId.1": "i-1"}
FILTERED = {**ONE, "Filter.1.Name": "instance-state-name"}


def describe(**parameters: str) -> Call:
    return query("ec2", "DescribeInstances", **parameters)


class Buckets(unittest.TestCase):
    def taken(self, made: Call, tries: int = 200) -> int:
        """How many calls in a row are not turned away."""
        for count in range(tries):
            try:
                self.limits.check(made)
            except AwsError as error:
                self.assertIn(error.code, ("RequestLimitExceeded", "ThrottlingException"))
                return count
        return tries

    def setUp(self) -> None:
        self.now = 0.0
        self.limits = Limits(lambda: self.now)

    def test_bucket_is_full_at_first_and_fills_with_time(self) -> None:
        self.assertEqual(self.taken(describe(**ONE)), 50)
        self.assertEqual(self.taken(describe(**FILTERED)), 100)
        # A call with pages has the bucket of one with filters.
        self.assertEqual(self.taken(describe(MaxResults="5")), 0)
        for self.now, expected in ((1.0, 20), (1000.0, 100)):
            self.assertEqual(self.taken(describe(**FILTERED)), expected)

    def test_divided_quotas_hold_for_one_caller(self) -> None:
        self.limits.divide(describe().access_key_id, 10)
        self.assertEqual(self.taken(describe(**ONE)), 5)
        self.now = 1.0
        self.assertEqual(self.taken(describe(**ONE)), 1)
        self.limits.divide("another", 2)
        self.assertEqual(self.taken(describe(**FILTERED)), 10)

    def test_parameter_store_reads_share_one_bucket(self) -> None:
        self.assertEqual(self.taken(call("ssm", "GetParameter"), 30), 30)
        self.assertEqual([self.taken(call("ssm", action)) for action in ("GetParameters", "PutParameter")], [10, 3])

    def test_eks_describes_ten_clusters_a_second(self) -> None:
        self.assertEqual(self.taken(call("eks", "DescribeCluster", "/clusters/prod", "GET")), 10)
