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

from bed_aws import shapes
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
        self._makers: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._completed: set[str] = set()
        self._changed = Condition()
        Thread(target=self._fire_for_ever, daemon=True).start()

    def answer(self, call: Call, moto_answers: Callable[[Call], Response]) -> Response:
        with self._changed:
            if call.action not in CHANGES:
                return moto_answers(call)
            asked = self._checked(call)
            arn = self._arn(asked)
            if call.action == "CreateSchedule" and self._stored(asked):
                if asked.get("ClientToken") == self._tokens[arn]:
                    # The same request once more, such as an SDK's second attempt.
                    return Response(json.dumps({"ScheduleArn": arn}), mimetype="application/json")
                raise AwsError(409, "ConflictException", f"Schedule {asked['Name']} already exists.")
            response = moto_answers(call)
            if response.status_code == 200:
                # moto leaves the one as it was when a schedule is updated, and takes the other away.
                stored = self._stored(asked)
                stored.action_after_completion = asked.get("ActionAfterCompletion", "NONE")
                stored.state = asked.get("State", "ENABLED")
                self._makers[arn] = call.access_key_id
                self._tokens[arn] = asked.get("ClientToken", "")
                self._completed.discard(arn)
                self._changed.notify()
            return response

    def schedules(self, access_key_id: str) -> list[dict[str, Any]]:
        """What a caller has scheduled and Scheduler still keeps, the earliest first."""
        with self._changed:
            mine = [schedule for schedule in self._all() if self._makers.get(schedule.arn) == access_key_id]
            return [described(schedule) for schedule in sorted(mine, key=due)]

    def _checked(self, call: Call) -> dict[str, Any]:
        """What is asked for; an AwsError when Scheduler would refuse it."""
        body = json.loads(call.request.get_data() or b"{}")
        asked = {**body, "Name": call.request.path.rpartition("/")[2]}
        if violations := shapes.violations("scheduler", call.action, asked):
            errors = "1 validation error" if len(violations) == 1 else f"{len(violations)} validation errors"
            raise _invalid(f"{errors} detected: {'; '.join(violations)}")
        expression, time_zone = asked["ScheduleExpression"], asked.get("ScheduleExpressionTimezone", "UTC")
        try:
            at = _moment(expression, time_zone)
        except (ValueError, KeyError):
            raise _invalid(f"Invalid Schedule Expression {expression}") from None
        if at < datetime.now(UTC):
            raise _invalid(f"Invalid Schedule Expression {expression}: it is in the past")
        self._check_target(asked["Target"])
        asked.setdefault("GroupName", "default")
        if asked["GroupName"] not in self._moto.scheduler.schedule_groups:
            raise AwsError(404, "ResourceNotFoundException", f"Schedule group {asked['GroupName']} does not exist.")
        return asked

    def _check_target(self, target: dict[str, Any]) -> None:
        if not _FUNCTION.fullmatch(target["Arn"]):
            raise _invalid("Invalid Parameter: this stand-in for Scheduler has no target but a function")
        try:
            json.loads(target.get("Input", ""))
        except ValueError:
            raise _invalid("Invalid Parameter: the Input of a function must be well-formed JSON") from None
        trusting = [role for role in self._moto.iam.roles.values() if role.arn == target["RoleArn"]]
        if not any("scheduler.amazonaws.com" in role.assume_role_policy_document for role in trusting):
            raise _invalid("The execution role you provide must allow AWS EventBridge Scheduler to assume the role.")

    def _arn(self, asked: dict[str, Any]) -> str:
        where = f"{self._moto.region}:{self._moto.account}"
        return f"arn:aws:scheduler:{where}:schedule/{asked['GroupName']}/{asked['Name']}"

    def _all(self) -> list[Schedule]:
        groups = self._moto.scheduler.schedule_groups.values()
        return [schedule for group in groups for schedule in group.schedules.values()]

    def _stored(self, asked: dict[str, Any]) -> Schedule | None:
        return self._moto.scheduler.schedule_groups[asked["GroupName"]].schedules.get(asked["Name"])

    def _fire_for_ever(self) -> None:
        with self._changed:
            while True:
                pending = [
                    schedule
                    for schedule in self._all()
                    if schedule.state == "ENABLED" and schedule.arn not in self._completed
                ]
                now = datetime.now(UTC)
                for schedule in pending:
                    if due(schedule) <= now:
                        self._fire(schedule)
                later = [(due(schedule) - now).total_seconds() for schedule in pending if due(schedule) > now]
                self._changed.wait(min(later, default=None))

    def _fire(self, schedule: Schedule) -> None:
        self._completed.add(schedule.arn)
        try:
            self._invocations.fire(self._makers[schedule.arn], schedule.target["Arn"], schedule.target["Input"])
        except Exception:
            # One that cannot be fired must not keep the others from it.
            traceback.print_exc()
        if schedule.action_after_completion == "DELETE":
            self._moto.scheduler.delete_schedule(schedule.group_name, schedule.name)


def due(schedule: Schedule) -> datetime:
    return _moment(schedule.schedule_expression, schedule.schedule_expression_timezone)


def described(schedule: Schedule) -> dict[str, Any]:
    return {
        "group": schedule.group_name,
        "name": schedule.name,
        "at": due(schedule).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "target": schedule.target["Arn"],
        "input": json.loads(schedule.target["Input"]),
        "dead_letters": schedule.target.get("DeadLetterConfig", {}).get("Arn"),
    }


def _moment(expression: str, time_zone: str) -> datetime:
    if not _AT.fullmatch(expression):
        raise ValueError(expression)
    return datetime.strptime(expression, "at(%Y-%m-%dT%H:%M:%S)").replace(tzinfo=ZoneInfo(time_zone))


def _invalid(message: str) -> AwsError:
    return AwsError(400, "ValidationException", message)
