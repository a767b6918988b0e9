"""Stand-in for what moto's EventBridge Scheduler lacks: it refuses what Scheduler refuses, and fires one-time
schedules.

moto stores them and answers the calls. A schedule that is due invokes its function with its input, on behalf of whoever
made it. Scheduler fires within the minute that `at` begins; here it is at the second.
"""

import json
import re
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Condition, Thread
from typing import Any
from zoneinfo import ZoneInfo

from moto.scheduler.models import Schedule
from werkzeug import Response

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.invocations import Invocations
from bed_aws.moto_side import Moto

CHANGES = ("CreateSchedule", "UpdateSchedule")
_AT = re.compile(r"at\(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\)")
_FUNCTION = re.compile(r"arn:aws[a-z-]*:lambda:[^:]+:\d{12}:function:[^:]+")


class Scheduler:
    def __init__(self, moto: Moto, invocations: Invocations) -> None:
        self._moto = moto
        self._invocations = invocations
        # Who has made a schedule, and with which token, by its ARN.
        self._makers: dict[str, tuple[str, str]] = {}
        self._completed: set[str] = set()
        self._changed = Condition()
        Thread(target=self._fire_for_ever, daemon=True).start()

    def answer(self, call: Call, moto_answers: Callable[[Call], Response]) -> dict[str, Any] | Response:
        with self._changed:
            if call.action not in CHANGES:
                return moto_answers(call)
            schedules, asked = self._checked(call.asked), call.asked
            if call.action == "CreateSchedule" and (stored := schedules.get(asked["Name"])):
                if asked.get("ClientToken") == self._makers[stored.arn][1]:
                    # The same request once more, such as an SDK's second attempt.
                    return {"ScheduleArn": stored.arn}
                raise AwsError(409, "ConflictException", f"Schedule {asked['Name']} already exists.")
            response = moto_answers(call)
            if response.status_code == 200:
                # moto leaves the one as it was when a schedule is updated, and takes the other away.
                stored = schedules[asked["Name"]]
                stored.action_after_completion = asked.get("ActionAfterCompletion", "NONE")
                stored.state = asked.get("State", "ENABLED")
                self._makers[stored.arn] = (call.access_key_id, asked.get("ClientToken", ""))
                self._completed.discard(stored.arn)
                self._changed.notify()
            return response

    def schedules(self, access_key_id: str) -> list[dict[str, Any]]:
        """What a caller has scheduled and Scheduler still keeps, the earliest first."""
        with self._changed:
            mine = [one for one in self._all() if self._makers.get(one.arn, ("", ""))[0] == access_key_id]
            return [described(schedule) for schedule in sorted(mine, key=due)]

    def _checked(self, asked: dict[str, Any]) -> dict[str, Schedule]:
        """The schedules of the group; an AwsError when Scheduler would refuse what is asked for."""
        expression, target = asked["ScheduleExpression"], asked["Target"]
        try:
            at = _moment(expression, asked.get("ScheduleExpressionTimezone", "UTC"))
        except (ValueError, KeyError):
            raise _invalid(f"Invalid Schedule Expression {expression}") from None
        if at < datetime.now(UTC):
            raise _invalid(f"Invalid Schedule Expression {expression}: it is in the past")
        if not _FUNCTION.fullmatch(target["Arn"]):
            raise _invalid("Invalid Parameter: this stand-in for Scheduler has no target but a function")
        try:
            json.loads(target.get("Input", ""))
        except ValueError:
            raise _invalid("Invalid Parameter: the Input of a function must be well-formed JSON") from None
        trusting = [role for role in self._moto.iam.roles.values() if role.arn == target["RoleArn"]]
        if not any("scheduler.amazonaws.com" in role.assume_role_policy_document for role in trusting):
            raise _invalid("The execution role you provide must allow AWS EventBridge Scheduler to assume the role.")
        group = asked.get("GroupName", "default")
        if group not in self._moto.scheduler.schedule_groups:
            raise AwsError(404, "ResourceNotFoundException", f"Schedule group {group} does not exist.")
        return self._moto.scheduler.schedule_groups[group].schedules

    def _all(self) -> list[Schedule]:
        groups = self._moto.scheduler.schedule_groups.values()
        return [schedule for group in groups for schedule in group.schedules.values()]

    def _fire_for_ever(self) -> None:
        with self._changed:
            while True:
                pending = [one for one in self._all() if one.state == "ENABLED" and one.arn not in self._completed]
                now = datetime.now(UTC)
                for schedule in pending:
                    if due(schedule) <= now:
                        self._fire(schedule)
                later = [(due(schedule) - now).total_seconds() for schedule in pending if due(schedule) > now]
                self._changed.wait(min(later, default=None))

    def _fire(self, schedule: Schedule) -> None:
        self._completed.add(schedule.arn)
        try:
            self._invocations.fire(self._makers[schedule.arn][0], schedule.target["Arn"], schedule.target["Input"])
        except Exception:
            # One that cannot be fired must not keep the others from it.
            traceback.print_exc()
        if schedule.action_after_completion == "DELETE":
            self._moto.scheduler.delete_schedule(schedule.group_name, schedule.name)


def due(schedule: Schedule) -> datetime:
    return _moment(schedule.schedule_expression, schedule.schedule_expression_timezone)


def described(schedule: Schedule) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "at": due(schedule).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "input": json.loads(schedule.target["Input"]),
        "dead_letters": schedule.target.get("DeadLetterConfig", {}).get("Arn"),
    }


def _moment(expression: str, time_zone: str) -> datetime:
    if not _AT.fullmatch(expression):
        raise ValueError(expression)
    return datetime.strptime(expression, "at(%Y-%m-%dT%H:%M:%S)").replace(tzinfo=ZoneInfo(time_zone))


def _invalid(message: str) -> AwsError:
    return AwsError(400, "ValidationException", message)
