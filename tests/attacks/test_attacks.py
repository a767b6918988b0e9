"""The threat model's table of attacks is what they come to, and the sample policy stops them."""

import unittest
from dataclasses import replace

import attacks
from attacks import NOTHING, somebody


class TheAttacks(unittest.TestCase):
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


if __name__ == "__main__":
    unittest.main()
