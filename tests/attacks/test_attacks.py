"""The threat model's table of attacks is what they come to, and each of them notices a door that stands open."""

import copy
import unittest
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import attacks
from attacks import EVERYTHING, NOTHING, RESOURCES, Stack, somebody


def of_rules(name: str, change: Callable[[dict[str, Any]], None]) -> Any:
    """The template with another pattern of a rule."""
    resources = copy.deepcopy(RESOURCES)
    change(resources[name]["Properties"]["EventPattern"])
    attacks._ruler.cache_clear()
    return patch.object(attacks, "RESOURCES", resources)


class TheAttacks(unittest.TestCase):
    def tearDown(self) -> None:
        attacks._ruler.cache_clear()

    def test_the_threat_model_has_what_each_comes_to(self) -> None:
        self.assertTrue(attacks.table() in attacks.PAGE.read_text(), "python tests/attacks/attacks.py --write")

    def test_guard_stops_each_attack(self) -> None:
        for attack in attacks.ATTACKS:
            with self.subTest(attack=attack.how):
                self.assertEqual(attack.tried(somebody(attack.rights, guarded=True)), NOTHING)

    def test_guard_leaves_the_stacks_own_roles_alone(self) -> None:
        for name, stack in attacks.ROLES.items():
            if name != "whoever enrols clusters":
                guarded = replace(stack, policies=[*stack.policies, {"name": "guard", "policy": attacks.GUARD}])
                self.assertEqual(attacks.worst(guarded), attacks.worst(stack), name)

    def test_nobody_without_a_right_gets_anything(self) -> None:
        nobody = somebody(())
        self.assertEqual({attack.tried(nobody) for attack in attacks.ATTACKS}, {NOTHING})

    def test_rule_for_foreign_events_or_archives_is_noticed(self) -> None:
        for key, attack, rights in (
            ("source", attacks.puts_events, ("events:PutEvents",)),
            ("account", attacks.forwards, ()),
            ("replay-name", attacks.replays, ("events:StartReplay",)),
        ):
            with self.subTest(key=key), of_rules("DrainInterruption", lambda pattern, key=key: pattern.pop(key)):
                self.assertEqual(attack(somebody(rights)), EVERYTHING)

    def test_a_permission_for_any_rule_is_noticed(self) -> None:
        anybodys = Stack(attacks.ANYBODY, somebody(("events:*",)).policies, ("arn:aws:events:*:*:rule/*",))
        self.assertEqual(attacks.makes_a_rule(anybodys), EVERYTHING)

    def test_a_role_that_trusts_scheduler_in_any_group_is_noticed(self) -> None:
        resources = copy.deepcopy(RESOURCES)
        del resources["SchedulesRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]
        with patch.object(attacks, "RESOURCES", resources):
            self.assertEqual(attacks.plans_elsewhere(somebody(("iam:PassRole",))), EVERYTHING)


if __name__ == "__main__":
    unittest.main()
