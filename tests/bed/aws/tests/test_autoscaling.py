"""The stand-in for lifecycle actions holds an instance as Auto Scaling does, and lets go of it the same way."""

import time
from typing import Any

from botocore.exceptions import ClientError

from tests.side import OnTheSide, Refused, bed


def hook(name: str = "drain", **fields: Any) -> dict[str, Any]:
    return {"name": name, "transition": "autoscaling:EC2_INSTANCE_TERMINATING", "heartbeat_timeout_s": 60, **fields}


def until_gone(instance_id: str) -> None:
    """Waits for the instance in the list of those that went; fails after ten seconds."""
    since, deadline = 0, time.monotonic() + 10
    while time.monotonic() < deadline:
        page = bed("GET", f"terminated?since={since}&wait_s=1")
        if instance_id in [gone["instance_id"] for gone in page["instances"]]:
            return
        since = page["next"]
    raise AssertionError(f"{instance_id} is still there")


class Lifecycle(OnTheSide):
    def complete(self, result: str = "CONTINUE", name: str = "drain", **target: str) -> None:
        self.client("autoscaling").complete_lifecycle_action(
            AutoScalingGroupName=self.id().rpartition(".")[2],
            LifecycleHookName=name,
            LifecycleActionResult=result,
            **target,
        )

    def heartbeat(self, **target: str) -> None:
        self.client("autoscaling").record_lifecycle_action_heartbeat(
            AutoScalingGroupName=self.id().rpartition(".")[2], LifecycleHookName="drain", **target
        )

    def assert_invalid(self, message: str, call: Any, **target: str) -> None:
        with self.assertRaises(ClientError) as caught:
            call(**target)
        error = {"Type": "Sender", "Code": "ValidationError", "Message": message}
        self.assertEqual(caught.exception.response["Error"], error)

    def test_a_completed_action_terminates_the_instance(self) -> None:
        instance = self.instance(hook(metadata="m"))
        self.assertEqual(bed("GET", f"instances/{instance}")["lifecycle_state"], "InService")
        [delivery] = bed("POST", "terminate", instance_id=instance)["delivered"]
        self.assertEqual(delivery["rule"], "DrainTerminate")
        detail = delivery["event"]["detail"]
        self.assertEqual((detail["EC2InstanceId"], detail["NotificationMetadata"]), (instance, "m"))
        held = bed("GET", f"instances/{instance}")
        self.assertEqual((held["state"], held["lifecycle_state"]), ("running", "Terminating:Wait"))

        token = detail["LifecycleActionToken"]
        self.heartbeat(LifecycleActionToken=token)
        self.complete(LifecycleActionToken=token)
        gone = bed("GET", f"instances/{instance}")
        self.assertEqual((gone["state"], gone["lifecycle_state"]), ("terminated", "Terminated"))
        self.assertEqual(
            gone["actions"],
            [{"hook": "drain", "token": token, "heartbeats": 1, "result": "CONTINUE", "ended_by": "call"}],
        )
        [reservation] = self.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
        self.assertEqual(reservation["Instances"][0]["State"]["Name"], "terminated")
        until_gone(instance)

    def test_an_action_is_found_by_its_instance_too(self) -> None:
        instance = self.instance(hook())
        bed("POST", "terminate", instance_id=instance)
        self.heartbeat(InstanceId=instance)
        self.complete(InstanceId=instance)
        until_gone(instance)

    def test_what_is_not_active_has_the_real_error_text(self) -> None:
        instance = self.instance(hook())
        no_token = "00000000-0000-0000-0000-000000000000"
        by_instance = f"No active Lifecycle Action found with instance ID {instance}"
        self.assert_invalid(by_instance, self.complete, InstanceId=instance)
        self.assert_invalid(by_instance, self.heartbeat, InstanceId=instance)
        self.assert_invalid(
            f"No active Lifecycle Action found with token {no_token}", self.complete, LifecycleActionToken=no_token
        )
        [delivery] = bed("POST", "terminate", instance_id=instance)["delivered"]
        token = delivery["event"]["detail"]["LifecycleActionToken"]
        self.complete(LifecycleActionToken=token)
        ended = f"No active Lifecycle Action found with token {token}"
        self.assert_invalid(ended, self.complete, LifecycleActionToken=token)
        self.assert_invalid(ended, self.heartbeat, LifecycleActionToken=token)

    def test_silence_ends_in_the_default_result(self) -> None:
        for default in ("ABANDON", "CONTINUE"):
            instance = self.instance(hook(heartbeat_timeout_s=1, default_result=default))
            bed("POST", "terminate", instance_id=instance)
            until_gone(instance)
            [action] = bed("GET", f"instances/{instance}")["actions"]
            self.assertEqual((action["result"], action["ended_by"]), (default, "expiry"))

    def test_heartbeats_hold_the_instance_longer_but_not_beyond_the_cap(self) -> None:
        instance = self.instance(hook(heartbeat_timeout_s=1, global_timeout_s=2))
        started = time.monotonic()
        bed("POST", "terminate", instance_id=instance)
        with self.assertRaisesRegex(ClientError, "No active Lifecycle Action"):
            while True:
                self.heartbeat(InstanceId=instance)
        self.assertGreaterEqual(time.monotonic() - started, 2)
        until_gone(instance)

    def test_a_hook_says_how_long_it_waits_in_all(self) -> None:
        for fields, in_all in (({}, 6000), ({"heartbeat_timeout_s": 7200}, 48 * 3600), ({"global_timeout_s": 20}, 20)):
            group = f"{self.id().rpartition('.')[2]}-{in_all}"
            bed("POST", "groups", name=group, hooks=[hook(**fields)])
            [described] = self.client("autoscaling").describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
            self.assertEqual(described["GlobalTimeout"], in_all)

    def test_every_hook_holds_and_abandon_ends_them_all(self) -> None:
        for result in ("CONTINUE", "ABANDON"):
            instance = self.instance(hook(), hook("logs"))
            self.assertEqual(len(bed("POST", "terminate", instance_id=instance)["delivered"]), 2)
            self.complete(result, "logs", InstanceId=instance)
            after = bed("GET", f"instances/{instance}")
            self.assertEqual(after["state"], "running" if result == "CONTINUE" else "terminated")
            self.assertEqual([action["result"] for action in after["actions"]], [None, result])

    def test_without_a_hook_nothing_holds_it(self) -> None:
        instance = self.instance(hook(transition="autoscaling:EC2_INSTANCE_LAUNCHING"))
        self.assertEqual(bed("POST", "terminate", instance_id=instance)["delivered"], [])
        until_gone(instance)
        with self.assertRaisesRegex(Refused, "terminating already"):
            bed("POST", "terminate", instance_id=instance)

    def test_hooks_are_described_and_an_unknown_group_is_not(self) -> None:
        self.instance(hook(metadata="m"))
        describe = self.client("autoscaling").describe_lifecycle_hooks
        [described] = describe(AutoScalingGroupName=self.id().rpartition(".")[2])["LifecycleHooks"]
        self.assertEqual((described["HeartbeatTimeout"], described["GlobalTimeout"]), (60, 6000))
        self.assertEqual((described["DefaultResult"], described["NotificationMetadata"]), ("ABANDON", "m"))
        with self.assertRaisesRegex(ClientError, "ValidationError.*AutoScalingGroup name not found"):
            describe(AutoScalingGroupName="nowhere")

    def test_a_reclaimed_spot_instance_goes_whatever_the_hook_says(self) -> None:
        instance = self.instance(hook(), spot=True)
        bed("POST", "terminate", instance_id=instance)
        [delivery] = bed("POST", "interrupt", instance_id=instance, in_s=0.2)["delivered"]
        self.assertEqual(delivery["event"]["detail"], {"instance-id": instance, "instance-action": "terminate"})
        until_gone(instance)


class Instances(OnTheSide):
    def test_an_instance_is_what_was_asked_for(self) -> None:
        fields = {"cluster": "shop", "zone": "us-east-1c", "spot": True, "tags": {"a": "b"}, "name_form": "resource"}
        launched = bed("POST", "instances", **fields)
        reservations = self.client("ec2").describe_instances(InstanceIds=[launched["instance_id"]])["Reservations"]
        [ec2] = reservations[0]["Instances"]
        self.assertEqual(ec2["PrivateDnsName"], f"{ec2['InstanceId']}.ec2.internal")
        self.assertEqual(launched["private_dns_name"], ec2["PrivateDnsName"])
        self.assertEqual((ec2["InstanceLifecycle"], ec2["Placement"]["AvailabilityZone"]), ("spot", "us-east-1c"))
        self.assertEqual(launched["provider_id"], f"aws:///us-east-1c/{ec2['InstanceId']}")
        tags = {tag["Key"]: tag["Value"] for tag in ec2["Tags"]}
        self.assertEqual(tags, {"kubernetes.io/cluster/shop": "owned", "aws:eks:cluster-name": "shop", "a": "b"})

    def test_one_that_was_ended_through_ec2_is_seen_too(self) -> None:
        instance = bed("POST", "instances", spot=False)["instance_id"]
        self.client("ec2").terminate_instances(InstanceIds=[instance])
        until_gone(instance)

    def test_only_spot_instances_are_interrupted(self) -> None:
        with self.assertRaisesRegex(Refused, "409"):
            bed("POST", "interrupt", instance_id=self.instance())
