"""The stand-in replaces an instance as Auto Scaling documents it, and refuses what AWS refuses."""

from typing import Any

from botocore.exceptions import ClientError

from tests.side import OnTheSide, bed

TERMINATING, LAUNCHING = "autoscaling:EC2_INSTANCE_TERMINATING", "autoscaling:EC2_INSTANCE_LAUNCHING"


class Replacing(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        self.group = self.id().rpartition(".")[2]

    def hooks(self, *transitions: str) -> list[dict[str, Any]]:
        return [{"name": one[-10:], "transition": one, "heartbeat_timeout_s": 60} for one in transitions]

    def terminate(self, instance: str, decrement: bool = False) -> dict[str, Any]:
        call = self.client("autoscaling").terminate_instance_in_auto_scaling_group
        return call(InstanceId=instance, ShouldDecrementDesiredCapacity=decrement)["Activity"]

    def refused(self, instance: str) -> str:
        with self.assertRaises(ClientError) as caught:
            self.terminate(instance)
        return caught.exception.response["Error"]["Code"]

    def described(self) -> dict[str, Any]:
        (group,) = self.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[self.group])["AutoScalingGroups"]
        return group

    def test_hook_holds_the_instance_while_another_one_is_launched(self) -> None:
        instance = self.instance(*self.hooks(TERMINATING, LAUNCHING), spot=True, tags={"team": "shop"})
        self.client("autoscaling").complete_lifecycle_action(
            AutoScalingGroupName=self.group, LifecycleHookName=LAUNCHING[-10:], LifecycleActionResult="CONTINUE", InstanceId=instance
        )
        self.terminate(instance)
        self.assertEqual(bed("instance", instance_id=instance)["lifecycle_state"], "Terminating:Wait")
        after = bed("launched", name=self.group)
        (launched,) = after["launched"]
        self.assertEqual(after["desired"], 3)
        self.assertEqual(bed("instance", instance_id=launched["instance_id"])["lifecycle_state"], "Pending:Wait")
        self.assertEqual([one["event"]["detail"]["EC2InstanceId"] for one in launched["delivered"]], [launched["instance_id"]])
        self.assertEqual([detail["EC2InstanceId"] for _, detail in self.about(instance)], [instance])
        (reservation,) = self.client("ec2").describe_instances(InstanceIds=[launched["instance_id"]])["Reservations"]
        (described,) = reservation["Instances"]
        self.assertIn({"Key": "team", "Value": "shop"}, described["Tags"])
        self.assertEqual(described["InstanceLifecycle"], "spot")

    def test_decrement_a_suspended_launch_or_a_second_request_starts_nothing(self) -> None:
        instance = self.instance(*self.hooks(TERMINATING))
        bed("put_group_state", name=self.group, suspended=["Launch"], desired=7)
        self.terminate(instance)
        self.terminate(instance)
        self.assertEqual(bed("launched", name=self.group), {"desired": 7, "launched": []})
        other = bed("launch", group=self.group)["instance_id"]
        self.assertIn("shrinking the capacity from 7 to 6", self.terminate(other, decrement=True)["Cause"])
        self.assertEqual(bed("launched", name=self.group), {"desired": 6, "launched": []})

    def test_contention_warm_pool_and_unknown_instance_are_refused(self) -> None:
        instance = self.instance(*self.hooks(TERMINATING))
        bed("put_group_state", name=self.group, contended=1)
        self.assertEqual(self.refused(instance), "ResourceContention")
        warmed = bed("launch", group=self.group, warm_pool=True)["instance_id"]
        self.assertEqual(self.refused(warmed), "ValidationError")
        self.assertEqual(self.refused("i-0123456789abcdef0"), "ValidationError")
        self.terminate(instance)

    def test_group_is_described_with_its_state_and_its_activities(self) -> None:
        instance = self.instance(*self.hooks(TERMINATING))
        bed("put_group_state", name=self.group, suspended=["AZRebalance"], warm_pool=True, rebalances=True, desired=5, replaced=2)
        group = self.described()
        self.assertEqual([one["ProcessName"] for one in group["SuspendedProcesses"]], ["AZRebalance"])
        self.assertEqual((group["DesiredCapacity"], group["CapacityRebalance"], "WarmPoolConfiguration" in group), (5, True, True))
        self.terminate(instance)
        activities = self.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=self.group)["Activities"]
        request = "in response to a user request"
        self.assertEqual([request in one["Cause"] for one in activities].count(True), 3)
        self.assertEqual(activities, sorted(activities, key=lambda one: one["StartTime"], reverse=True))

    def test_spot_request_has_the_status_of_its_instance(self) -> None:
        instance = self.instance(spot=True)
        (reservation,) = self.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
        request = reservation["Instances"][0]["SpotInstanceRequestId"]

        def status() -> str:
            described = self.client("ec2").describe_spot_instance_requests(SpotInstanceRequestIds=[request])
            return described["SpotInstanceRequests"][0]["Status"]["Code"]

        self.assertEqual(status(), "fulfilled")
        bed("interrupt_in", instance_id=instance, in_s=60)
        self.assertEqual(status(), "marked-for-termination")
        bed("mark_spot_request", instance_id=instance, status="instance-terminated-no-capacity", age_s=600)
        self.assertEqual(status(), "instance-terminated-no-capacity")
        (reservation,) = self.client("ec2").describe_instances(InstanceIds=[self.instance()])["Reservations"]
        self.assertNotIn("SpotInstanceRequestId", reservation["Instances"][0])
