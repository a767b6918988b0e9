"""The stand-in for Auto Scaling holds, lets go of and replaces an instance as Auto Scaling does."""

from typing import Any

from tests.side import OnTheSide, bed


def leave(instance: str) -> list[dict[str, Any]]:
    return bed("move_past_hooks", instance_id=instance, how="terminate")


class Lifecycle(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        self.autoscaling = self.client("autoscaling")

    def complete(self, name: str = "drain", result: str = "CONTINUE", **target: str) -> None:
        of = {"AutoScalingGroupName": self.group, "LifecycleHookName": name, "LifecycleActionResult": result}
        self.autoscaling.complete_lifecycle_action(**of, **target)

    def test_inactive_action_is_refused_by_token_and_instance(self) -> None:
        instance = self.instance("drain")
        none = "No active Lifecycle Action found with"
        self.assert_refused("ValidationError", f"{none} instance ID {instance}", self.complete, InstanceId=instance)
        [delivery] = leave(instance)
        token = delivery["event"]["detail"]["LifecycleActionToken"]
        self.complete(LifecycleActionToken=token)
        self.assert_refused("ValidationError", f"{none} token {token}", self.complete, LifecycleActionToken=token)
        of = {"AutoScalingGroupName": self.group, "LifecycleHookName": "drain", "LifecycleActionToken": token}
        heartbeat = self.autoscaling.record_lifecycle_action_heartbeat
        self.assert_refused("ValidationError", f"{none} token {token}", heartbeat, **of)

    def test_abandon_ends_every_hook_and_continue_its_own(self) -> None:
        for result, state in (("CONTINUE", "running"), ("ABANDON", "terminated")):
            instance = self.instance("drain", "logs")
            self.assertEqual(len(leave(instance)), 2)
            self.complete("logs", result, InstanceId=instance)
            after = bed("instance", instance_id=instance)
            self.assertEqual((after["state"], [one["result"] for one in after["actions"]]), (state, [None, result]))

    def terminate(self, instance: str, decrement: bool = False) -> str:
        call = self.autoscaling.terminate_instance_in_auto_scaling_group
        return call(InstanceId=instance, ShouldDecrementDesiredCapacity=decrement)["Activity"]["Cause"]

    def test_replacement_is_of_the_same_kind_and_passes_the_hook(self) -> None:
        instance = self.instance("drain", spot=True, tags={"team": "shop"})
        self.terminate(instance)
        self.assertEqual(bed("instance", instance_id=instance)["lifecycle_state"], "Terminating:Wait")
        [launched] = bed("launched", name=self.group)["launched"]
        [reservation] = self.client("ec2").describe_instances(InstanceIds=[launched["instance_id"]])["Reservations"]
        [described] = reservation["Instances"]
        self.assertIn({"Key": "team", "Value": "shop"}, described["Tags"])
        self.assertEqual(described["InstanceLifecycle"], "spot")

    def test_decrement_suspension_or_repetition_launches_nothing(self) -> None:
        instance = self.instance("drain")
        bed("put_group_state", name=self.group, suspended=["Launch"])
        self.terminate(instance)
        self.terminate(instance)
        other = bed("launch", group=self.group)["instance_id"]
        self.assertIn("shrinking the capacity from 3 to 2", self.terminate(other, decrement=True))
        self.assertEqual(bed("launched", name=self.group), {"desired": 2, "launched": []})
        self.assert_refused("ValidationError", "No managed instance found", self.terminate, "i-0123456789abcdef0")
        bed("put_group_state", name=self.group, contended=1)
        self.assert_refused("ResourceContention", "a pending update", self.terminate, bed("launch", group=self.group)["instance_id"])

    def test_spot_request_has_the_status_of_its_interruption(self) -> None:
        instance, status = self.instance(spot=True), []
        [reservation] = self.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
        request = reservation["Instances"][0]["SpotInstanceRequestId"]
        for step in (lambda: None, lambda: bed("interrupt_in", instance_id=instance, in_s=60)):
            step()
            described = self.client("ec2").describe_spot_instance_requests(SpotInstanceRequestIds=[request])
            status.append(described["SpotInstanceRequests"][0]["Status"]["Code"])
        self.assertEqual(status, ["fulfilled", "marked-for-termination"])
