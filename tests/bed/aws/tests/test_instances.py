"""Instances are what was asked for, go through EC2's states with EC2's events, and are found by what they are."""

from tests.side import OnTheSide, Refused, bed


class Launched(OnTheSide):
    def test_only_spot_instances_are_interrupted(self) -> None:
        with self.assertRaisesRegex(Refused, "409"):
            bed("interrupt_in", instance_id=self.instance(), in_s=120)


class States(OnTheSide):
    def go(self, instance_id: str, *states: str) -> list[str]:
        delivered = bed("change_state", instance_id=instance_id, states=states)
        self.assertEqual({one["rule"] for one in delivered}, {"DrainInterruption"})
        return [one["event"]["detail"]["state"] for one in delivered]

    def test_no_state_is_left_out(self) -> None:
        instance = self.instance()
        with self.assertRaisesRegex(Refused, f"{instance} is running: from there it does not become stopped"):
            self.go(instance, "stopped")

    def test_only_what_runs_is_rebooted_and_ec2_says_nothing(self) -> None:
        instance = self.instance()
        bed("reboot", instance_id=instance)
        self.assertEqual(self.about(instance), [])
        self.go(instance, "stopping")
        with self.assertRaisesRegex(Refused, "409"):
            bed("reboot", instance_id=instance)
