"""A one-time schedule is taken or refused as Scheduler does it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.side import ACCOUNT, REGION, OnTheSide, bed


def in_(seconds: float) -> str:
    return f"at({datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S})"


class Schedules(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        self.scheduler = self.client("scheduler")
        self.of_group, role, _ = bed("variables")["SPILLWAY_SCHEDULES"].split()
        function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.session}"
        self.target = {"Arn": function, "RoleArn": role, "Input": json.dumps({"notice": {"id": "1"}})}

    def asked(self, **changed: Any) -> dict[str, Any]:
        """A schedule in an hour; with other members, and with other members of its target."""
        target = {**self.target, **{name: changed.pop(name) for name in ("Arn", "RoleArn", "Input") if name in changed}}
        of = {"Name": self.group[-60:], "GroupName": self.of_group, "ScheduleExpression": in_(3600)}
        return {**of, "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target, **changed}

    def test_second_schedule_of_a_name_conflicts_unless_repeated(self) -> None:
        create = self.scheduler.create_schedule
        for _ in range(2):
            create(**self.asked(ClientToken="t-1"))
        self.assert_refused("ConflictException", "already exists.", create, **self.asked())
        self.assertEqual(len(bed("schedules", access_key_id=self.key)), 1)

    def test_schedule_or_group_that_is_not_there_is_not_found(self) -> None:
        name = {"Name": "nothing", "GroupName": self.of_group}
        for call, asked in (
            (self.scheduler.get_schedule, name),
            (self.scheduler.delete_schedule, name),
            (self.scheduler.update_schedule, {**self.asked(), **name}),
            (self.scheduler.create_schedule, self.asked(GroupName="elsewhere")),
        ):
            self.assert_refused("ResourceNotFoundException", "does not exist.", call, **asked)

    def test_schedule_that_scheduler_does_not_take_is_refused(self) -> None:
        trust = json.dumps({"Statement": [{"Principal": {"Service": "lambda.amazonaws.com"}}]})
        role = self.client("iam").create_role(RoleName=self.group[-60:], AssumeRolePolicyDocument=trust)["Role"]
        no_times = (in_(-2), "at(2030-02-30T00:00:00)", "at(2030-1-1T00:00:00)", "at(2030-01-01T00:00:00Z)")
        roles = (role["Arn"], f"arn:aws:iam::{ACCOUNT}:role/nobody")
        for message, changed in (
            *((f"Invalid Schedule Expression {time}", {"ScheduleExpression": time}) for time in no_times),
            *(("must allow AWS EventBridge Scheduler to assume the role", {"RoleArn": role}) for role in roles),
            ("length less than or equal to 64", {"Name": "a" * 65}),
            ("pattern", {"Name": "a:b"}),
            ("'flexibleTimeWindow.mode'", {"FlexibleTimeWindow": {"Mode": "SOME"}}),
            ("no target but a function", {"Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"}),
            ("JSON", {"Input": "{"}),
        ):
            self.assert_refused("ValidationException", message, self.scheduler.create_schedule, **self.asked(**changed))
