"""The stand-in for lifecycle actions holds an instance as Auto Scaling does, and lets go of it the same way."""

import time
from typing import Any

from botocore.exceptions import ClientError

from tests.side import OnTheSide, Refused, bed, move, until_gone

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"


def hook(name: str = "drain", **fields: Any) -> dict[str, Any]:
    return {"name": name, "transition": "autoscaling:EC2_INSTANCE_TERMINATING", "heartbeat_timeout_s": 60, **fields}


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
        [delivery] = move(instance)
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
        move(instance)
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
        [delivery] = move(instance)
        token = delivery["event"]["detail"]["LifecycleActionToken"]
        self.complete(LifecycleActionToken=token)
        ended = f"No active Lifecycle Action found with token {token}"
        self.assert_invalid(ended, self.complete, LifecycleActionToken=token)
        self.assert_invalid(ended, self.heartbeat, LifecycleActionToken=token)

    def test_silence_ends_in_the_default_result(self) -> None:
        for default in ("ABANDON", "CONTINUE"):
            instance = self.instance(hook(heartbeat_timeout_s=1, default_result=default))
            move(instance)
            until_gone(instance)
            [action] = bed("GET", f"instances/{instance}")["actions"]
            self.assertEqual((action["result"], action["ended_by"]), (default, "expiry"))

    def test_heartbeats_hold_the_instance_longer_but_not_beyond_the_cap(self) -> None:
        # On a loaded machine a heartbeat may come seconds after the last.
        instance = self.instance(hook(heartbeat_timeout_s=5, global_timeout_s=6))
        started = time.monotonic()
        move(instance)
        with self.assertRaisesRegex(ClientError, "No active Lifecycle Action"):
            while True:
                self.heartbeat(InstanceId=instance)
        self.assertGreaterEqual(time.monotonic() - started, 6)
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
            self.assertEqual(len(move(instance)), 2)
            self.complete(result, "logs", InstanceId=instance)
            after = bed("GET", f"instances/{instance}")
            self.assertEqual(after["state"], "running" if result == "CONTINUE" else "terminated")
            self.assertEqual([action["result"] for action in after["actions"]], [None, result])

    def test_without_a_hook_nothing_holds_it(self) -> None:
        instance = self.instance()
        self.assertEqual(move(instance), [])
        until_gone(instance)
        with self.assertRaisesRegex(Refused, "is Terminated, not InService"):
            move(instance)

    def test_hooks_are_described_and_an_unknown_group_is_not(self) -> None:
        self.instance(hook(metadata="m"))
        describe = self.client("autoscaling").describe_lifecycle_hooks
        [described] = describe(AutoScalingGroupName=self.id().rpartition(".")[2])["LifecycleHooks"]
        self.assertEqual((described["HeartbeatTimeout"], described["GlobalTimeout"]), (60, 6000))
        self.assertEqual((described["DefaultResult"], described["NotificationMetadata"]), ("ABANDON", "m"))
        with self.assertRaisesRegex(ClientError, "ValidationError.*AutoScalingGroup name not found"):
            describe(AutoScalingGroupName="nowhere")

    def test_one_more_hook_does_not_see_what_was_completed_before(self) -> None:
        instance = self.instance(hook(), hook("logs"))
        move(instance)
        self.complete(InstanceId=instance)
        self.assert_invalid(
            f"No active Lifecycle Action found with instance ID {instance}", self.complete, InstanceId=instance
        )
        self.complete(name="logs", InstanceId=instance)
        until_gone(instance)

    def test_a_reclaimed_spot_instance_goes_whatever_the_hook_says(self) -> None:
        instance = self.instance(hook(), spot=True)
        move(instance)
        [delivery] = bed("POST", "interrupt", instance_id=instance, in_s=0.2)["delivered"]
        self.assertEqual(delivery["event"]["detail"], {"instance-id": instance, "instance-action": "terminate"})
        until_gone(instance)


class Launching(OnTheSide):
    def launched(self, *hooks: dict[str, Any], **fields: Any) -> tuple[str, list[dict[str, Any]]]:
        group = self.id().rpartition(".")[2]
        bed("POST", "groups", name=group, hooks=list(hooks))
        launched = bed("POST", "instances", group=group, **fields)
        return launched["instance_id"], [delivery["event"]["detail"] for delivery in launched["delivered"]]

    def complete(self, detail: dict[str, Any], result: str = "CONTINUE") -> None:
        self.client("autoscaling").complete_lifecycle_action(
            AutoScalingGroupName=detail["AutoScalingGroupName"],
            LifecycleHookName=detail["LifecycleHookName"],
            LifecycleActionToken=detail["LifecycleActionToken"],
            LifecycleActionResult=result,
        )

    def state(self, instance_id: str) -> tuple[str, str]:
        described = bed("GET", f"instances/{instance_id}")
        return described["state"], described["lifecycle_state"]

    def test_a_launch_hook_holds_an_instance_until_it_is_completed(self) -> None:
        instance, [detail] = self.launched(hook("ready", transition=LAUNCHING, metadata="m"), hook())
        token = detail.pop("LifecycleActionToken")
        self.assertEqual(
            detail,
            {
                "AutoScalingGroupName": self.id().rpartition(".")[2],
                "LifecycleHookName": "ready",
                "EC2InstanceId": instance,
                "LifecycleTransition": LAUNCHING,
                "NotificationMetadata": "m",
                "Origin": "EC2",
                "Destination": "AutoScalingGroup",
            },
        )
        self.assertEqual(self.state(instance), ("running", "Pending:Wait"))
        with self.assertRaisesRegex(Refused, "is Pending:Wait, not InService"):
            move(instance)
        self.complete({**detail, "LifecycleActionToken": token})
        self.assertEqual(self.state(instance), ("running", "InService"))
        self.assertEqual(len(move(instance)), 1)

    def test_an_abandoned_launch_ends_the_instance(self) -> None:
        instance, details = self.launched(hook("ready", transition=LAUNCHING), hook("agent", transition=LAUNCHING))
        self.assertEqual([detail["LifecycleHookName"] for detail in details], ["ready", "agent"])
        self.complete(details[0])
        self.assertEqual(self.state(instance), ("running", "Pending:Wait"))
        self.complete(details[1], "ABANDON")
        self.assertEqual(self.state(instance), ("terminated", "Terminated"))

    def test_a_return_to_the_warm_pool_stops_the_instance_and_scale_out_starts_it(self) -> None:
        instance, _ = self.launched(hook(), hook("ready", transition=LAUNCHING), warm_pool=True)
        self.assertEqual(self.state(instance), ("running", "Warmed:Pending:Wait"))
        self.complete({**self.action(instance, "ready"), "AutoScalingGroupName": self.id().rpartition(".")[2]})
        self.assertEqual(self.state(instance), ("stopped", "Warmed:Stopped"))
        states = [detail["state"] for _, detail in self.about(instance)]
        self.assertEqual(states, ["stopping", "stopped"])

        pending, running, launch = (delivery["event"]["detail"] for delivery in move(instance, "launch from warm pool"))
        self.assertEqual((pending["state"], running["state"]), ("pending", "running"))
        self.assertEqual((launch["Origin"], launch["Destination"]), ("WarmPool", "AutoScalingGroup"))
        self.complete(launch)
        self.assertEqual(self.state(instance), ("running", "InService"))

        [delivery] = move(instance, "return to warm pool")
        detail = delivery["event"]["detail"]
        self.assertEqual((detail["Origin"], detail["Destination"]), ("AutoScalingGroup", "WarmPool"))
        self.assertEqual(self.state(instance), ("running", "Terminating:Wait"))
        self.complete(detail)
        self.assertEqual(self.state(instance), ("stopped", "Warmed:Stopped"))

    def test_an_instance_of_a_running_warm_pool_is_neither_stopped_nor_started(self) -> None:
        instance, [launch] = self.launched(hook(), hook("ready", transition=LAUNCHING))
        self.complete(launch)
        [delivery] = move(instance, "return to running warm pool")
        self.complete(delivery["event"]["detail"])
        self.assertEqual(self.state(instance), ("running", "Warmed:Running"))

        [delivery] = move(instance, "launch from warm pool")
        launch = delivery["event"]["detail"]
        self.assertEqual((launch["Origin"], launch["Destination"]), ("WarmPool", "AutoScalingGroup"))
        self.complete(launch)
        self.assertEqual(self.state(instance), ("running", "InService"))

    def action(self, instance_id: str, name: str) -> dict[str, Any]:
        actions = bed("GET", f"instances/{instance_id}")["actions"]
        [token] = [action["token"] for action in actions if action["hook"] == name]
        return {"LifecycleHookName": name, "LifecycleActionToken": token}

    def test_a_replaced_root_volume_gives_the_same_instance_back(self) -> None:
        instance, [launch] = self.launched(hook(), hook("ready", transition=LAUNCHING))
        self.complete(launch)
        [delivery] = move(instance, "replace root volume")
        terminate = delivery["event"]["detail"]
        ends = {"Origin": "AutoScalingGroup", "Destination": "AutoScalingGroup", "Action": "ReplaceRootVolume"}
        self.assertEqual(terminate, terminate | ends)
        self.assertEqual(self.state(instance), ("running", "ReplacingRootVolume:Wait"))
        since = bed("GET", "changes")["next"]
        self.complete(terminate)
        [(rule, launch)] = self.about(instance)
        self.assertEqual((rule, launch), ("DrainLaunch", launch | ends | {"LifecycleTransition": LAUNCHING}))
        changes = bed("GET", f"changes?since={since}")["changes"]
        self.assertEqual([(change["instance_id"], change["what"]) for change in changes], [(instance, "rebooted")])
        self.complete(launch)
        self.assertEqual(self.state(instance), ("running", "InService"))


class Retention(OnTheSide):
    def test_a_group_with_such_a_policy_keeps_an_instance_whose_terminate_hook_is_abandoned(self) -> None:
        group = self.id().rpartition(".")[2]
        bed("POST", "groups", name=group, hooks=[hook()], keeps_abandoned=True)
        instance = bed("POST", "instances", group=group)["instance_id"]
        move(instance)
        autoscaling = self.client("autoscaling")
        autoscaling.complete_lifecycle_action(
            AutoScalingGroupName=group, LifecycleHookName="drain", LifecycleActionResult="ABANDON", InstanceId=instance
        )
        self.assertEqual(bed("GET", f"instances/{instance}")["lifecycle_state"], "Terminating:Retained")
        self.assertEqual(bed("GET", f"instances/{instance}")["state"], "running")
        asked = {"AutoScalingGroupNames": [group], "IncludeInstances": False}
        [described] = autoscaling.describe_auto_scaling_groups(**asked)["AutoScalingGroups"]
        self.assertEqual(described["InstanceLifecyclePolicy"]["RetentionTriggers"], {"TerminateHookAbandon": "retain"})
        self.assertEqual(described["Instances"], [])


class Tags(OnTheSide):
    def described(self, *filters: tuple[str, list[str]]) -> list[list[dict[str, Any]]]:
        paginator = self.client("autoscaling").get_paginator("describe_tags")
        asked = [{"Name": name, "Values": values} for name, values in filters]
        return [page["Tags"] for page in paginator.paginate(Filters=asked)]

    def test_the_tags_of_a_group_are_described_in_pages(self) -> None:
        group = self.id().rpartition(".")[2]
        bed("POST", "groups", name=group, hooks=[], tags={"a": "1", "b": "2", "c": "<3>"})
        bed("POST", "pages", access_key_id=self.key, size=2)
        first, second = self.described(("auto-scaling-group", [group]))
        tag = {"ResourceId": group, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
        self.assertEqual(first, [{**tag, "Key": "a", "Value": "1"}, {**tag, "Key": "b", "Value": "2"}])
        self.assertEqual(second, [{**tag, "Key": "c", "Value": "<3>"}])

    def test_filters_narrow_each_other(self) -> None:
        group = self.id().rpartition(".")[2]
        bed("POST", "groups", name=group, hooks=[], tags={"a": "1", "b": "2"})
        [tags] = self.described(("auto-scaling-group", [group, "other"]), ("key", ["b", "c"]))
        self.assertEqual([(tag["Key"], tag["Value"]) for tag in tags], [("b", "2")])
        self.assertEqual(self.described(("auto-scaling-group", ["nobody"])), [[]])
        with self.assertRaisesRegex(ClientError, "Filter type tag is not correct"):
            self.described(("tag", ["b"]))

    def test_an_instance_has_none_of_them(self) -> None:
        group = self.id().rpartition(".")[2]
        bed("POST", "groups", name=group, hooks=[], tags={"a": "1"})
        instance = bed("POST", "instances", group=group)["instance_id"]
        [reservation] = self.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
        self.assertEqual(reservation["Instances"][0]["Tags"], [{"Key": "aws:autoscaling:groupName", "Value": group}])
