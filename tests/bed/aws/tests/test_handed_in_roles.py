"""A stack with RoleArns has the rights of the other stack's roles, and leaves these when it is deleted."""

import unittest
from pathlib import Path

from bed_aws import stack
from bed_aws.iam import Iam
from bed_aws.stacks import Stacks
from tests.side import ACCOUNT, REGION, moto

ROOT = Path(__file__).resolve().parents[4]
ROLES = (ROOT / "deploy/cloudformation/roles.yaml").read_text()
SCHEDULES_ROLE = "administrators-SchedulesRole"


class HandedIn(unittest.TestCase):
    def setUp(self) -> None:
        self.iam = Iam(ROOT / "template.yaml", moto)
        self.stacks = Stacks(moto, self.iam, {})
        self.addCleanup(self.stacks.delete, "administrators")
        self.stacks.put("administrators", {}, {"StackName": "spillway"}, ROLES)

    def may_schedule(self, name: str) -> bool:
        """Whether Scheduler may invoke the function of that name, for itself."""
        self.iam.deploy(name, "spillway-drain", name, {})
        return self.iam.may_schedule(name, f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}")

    def test_roles_go_with_their_own_stack_alone(self) -> None:
        self.stacks.delete("spillway")
        self.assertIn(SCHEDULES_ROLE, stack.left(moto)["roles"])
        self.stacks.delete("administrators")
        self.assertNotIn(SCHEDULES_ROLE, stack.left(moto)["roles"])

    def test_rights_are_on_names_that_begin_with_the_stacks(self) -> None:
        self.assertEqual([self.may_schedule(name) for name in ("spillway-Drain-1", "another-Drain-1")], [True, False])
        self.stacks.delete("administrators")
        self.assertTrue(self.may_schedule("another-Drain-1"), "by its own roles")


if __name__ == "__main__":
    unittest.main()
