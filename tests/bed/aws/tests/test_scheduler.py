"""A one-time schedule is taken or refused as Scheduler does it, fires once when it is due, and invokes its function."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from tests.side import ACCOUNT, REGION, OnTheSide, bed

DETAIL = {"notice": {"id": "1"}}


def at(moment: datetime) -> str:
    return f"at({moment:%Y-%m-%dT%H:%M:%S})"


def in_(seconds: float) -> datetime:
    """At least so far ahead: Scheduler knows whole seconds, and refuses one that has begun."""
    return (datetime.now(UTC) + timedelta(seconds=seconds + 1)).replace(microsecond=0)


class Schedules(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        self.scheduler = self.client("scheduler")
        self.name = self.id().rpartition(".")[2][-60:]
        self.function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.session}"
        self.group, self.role, self.failures = bed("variables")["SPILLWAY_SCHEDULES"].split()

    def asked(self, expression: str, target: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        whole = {
            "Arn": self.function,
            "RoleArn": self.role,
            "Input": json.dumps(DETAIL),
            "DeadLetterConfig": {"Arn": self.failures},
        }
        return {
            "Name": self.name,
            "GroupName": self.group,
            "ScheduleExpression": expression,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {**whole, **(target or {})},
            **fields,
        }

    def create(self, expression: str, **fields: Any) -> None:
        self.scheduler.create_schedule(**self.asked(expression, **fields))

    def wait(self) -> list[dict[str, Any]]:
        return bed("await_deliveries", sender=self.key, most=1, wait_s=10)

    def kept(self) -> list[dict[str, Any]]:
        return bed("schedules", access_key_id=self.key)

    def assert_refused(self, code: str, message: str, call: Any, *args: Any, **fields: Any) -> None:
        with self.assertRaises(ClientError) as caught:
            call(*args, **fields)
        error = caught.exception.response["Error"]
        self.assertEqual(error["Code"], code)
        self.assertIn(message, error["Message"])

    def test_second_schedule_of_a_name_conflicts_unless_repeated(self) -> None:
        self.create(at(in_(3600)), ClientToken="t-1")
        self.create(at(in_(3600)), ClientToken="t-1")
        message = f"Schedule {self.name} already exists."
        self.assert_refused("ConflictException", message, self.create, at(in_(3600)))
        self.assertEqual(len(self.kept()), 1)

    def test_what_is_not_there_is_not_found(self) -> None:
        name = {"Name": "nothing", "GroupName": self.group}
        refused = "ResourceNotFoundException"
        self.assert_refused(refused, "Schedule nothing does not exist.", self.scheduler.get_schedule, **name)
        self.assert_refused(refused, "Schedule nothing does not exist.", self.scheduler.delete_schedule, **name)
        update = {**self.asked(at(in_(3600))), **name}
        self.assert_refused(refused, "Schedule nothing does not exist.", self.scheduler.update_schedule, **update)
        elsewhere = {"GroupName": "elsewhere"}
        self.assert_refused(refused, "Schedule group elsewhere", self.create, at(in_(3600)), **elsewhere)

    def test_a_time_that_has_passed_or_is_none_is_refused(self) -> None:
        no_times = ("at(2030-02-30T00:00:00)", "at(2030-1-1T00:00:00)", "at(2030-01-01T00:00:00Z)", "2030")
        for expression in (at(in_(-2)), *no_times):
            message = f"Invalid Schedule Expression {expression}"
            self.assert_refused("ValidationException", message, self.create, expression)

    def test_a_name_that_scheduler_does_not_take_is_refused(self) -> None:
        for name, message in (("a" * 65, "length less than or equal to 64"), ("a:b", "pattern"), ("a b", "pattern")):
            self.assert_refused("ValidationException", message, self.create, at(in_(3600)), Name=name)

    def test_what_is_missing_or_no_known_word_is_named(self) -> None:
        mode = {"FlexibleTimeWindow": {"Mode": "SOME"}}
        self.assert_refused("ValidationException", "'flexibleTimeWindow.mode'", self.create, at(in_(3600)), **mode)
        bus = {"Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"}
        self.assert_refused("ValidationException", "no target but a function", self.create, at(in_(3600)), target=bus)
        self.assert_refused("ValidationException", "JSON", self.create, at(in_(3600)), target={"Input": "{"})

    def test_a_role_that_scheduler_may_not_assume_is_refused(self) -> None:
        trust = json.dumps({"Statement": [{"Principal": {"Service": "lambda.amazonaws.com"}}]})
        moto_role = self.client("iam").create_role(RoleName=self.name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        for role in (moto_role, f"arn:aws:iam::{ACCOUNT}:role/nobody"):
            message = "must allow AWS EventBridge Scheduler to assume the role"
            self.assert_refused("ValidationException", message, self.create, at(in_(3600)), target={"RoleArn": role})
