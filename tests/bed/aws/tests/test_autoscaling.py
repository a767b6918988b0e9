"""The stand-in for lifecycle actions holds an instance as Auto Scaling does, and lets go of it the same way."""

from typing import Any

from botocore.exceptions import ClientError

from tests.side import OnTheSide, Refused, bed, move, until_gone


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

    def test_every_hook_holds_and_abandon_ends_them_all(self) -> None:
        for result in ("CONTINUE", "ABANDON"):
            instance = self.instance(hook(), hook("logs"))
            self.assertEqual(len(move(instance)), 2)
            self.complete(result, "logs", InstanceId=instance)
            after = bed("instance", instance_id=instance)
            self.assertEqual(after["state"], "running" if result == "CONTINUE" else "terminated")
            self.assertEqual([action["result"] for action in after["actions"]], [None, result])

    def test_without_a_hook_nothing_holds_it(self) -> None:
        instance = self.instance()
        self.assertEqual(move(instance), [])
        until_gone(instance)
        with self.assertRaisesRegex(Refused, "is Terminated, not InService"):
            move(instance)
