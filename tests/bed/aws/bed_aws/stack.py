"""What the bed makes of the product's stack, in moto: the schedule group, Scheduler's role, the queues and the rules, from
the template; and the variables by which the function knows them. Deleting the stack takes them away.
"""

import json
from collections.abc import Iterator
from typing import Any

from bed_aws import rules
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from bed_aws.template import TemplateError

STACK = rules.STACK
# CloudFormation ends each name that it makes with twelve random characters.
SUFFIX = "1A2B3C4D5E6F"
# Functions and their roles, by the names under which the tests take them.
FUNCTIONS = {"spillway-drain": ("Drain", "DrainRole"), "spillway-announcer": ("Announcer", "AnnouncerRole")}
GROUP, QUEUE = "AWS::Scheduler::ScheduleGroup", "AWS::SQS::Queue"


def install(whole: dict[str, Any], moto: Moto, arns: str = "") -> dict[str, str]:
    """Makes the parts of the stack; answers the function's variables made of them. `arns`: roles that are handed in."""
    known = {} if arns else roles(whole, moto, STACK)
    for logical_id in _of_type(whole, GROUP):
        known[logical_id] = moto.scheduler.create_schedule_group(name(logical_id), []).name
    for logical_id in _of_type(whole, QUEUE):
        known[f"{logical_id}.Arn"] = moto.sqs.create_queue(name(logical_id)).queue_arn
    rules.put(rules.read(whole), moto)
    made = Intrinsics(whole, {"RoleArns": arns}, known)
    variables = whole["Resources"]["Drain"]["Properties"].get("Environment", {}).get("Variables", {})
    found = {variable: _made_of(value, made, known) for variable, value in variables.items()}
    return {variable: text for variable, text in found.items() if text is not None}


def roles(whole: dict[str, Any], moto: Moto, stack: str) -> dict[str, str]:
    """Makes Scheduler's roles of a stack; answers their ARNs. Those of functions are everybody's in the bed."""
    return {
        f"{logical_id}.Arn": moto.iam.create_role(f"{stack}-{logical_id}", trust, "/", None, "", [], "3600").arn
        for logical_id, trust in _of_scheduler(whole).items()
    }


def remove_roles(whole: dict[str, Any], moto: Moto, stack: str) -> None:
    for logical_id in _of_scheduler(whole):
        if f"{stack}-{logical_id}" in [role.name for role in moto.iam.roles.values()]:
            moto.iam.delete_role(f"{stack}-{logical_id}")


def remove(whole: dict[str, Any], moto: Moto) -> None:
    """What CloudFormation deletes with the stack. A schedule group goes with its schedules, a queue with its messages."""
    remove_roles(whole, moto, STACK)
    for logical_id in _of_type(whole, GROUP):
        moto.scheduler.delete_schedule_group(name(logical_id))
    for logical_id in _of_type(whole, QUEUE):
        moto.sqs.delete_queue(name(logical_id))
    rules.remove(rules.read(whole), moto)


def left(moto: Moto) -> dict[str, list[str]]:
    """All of the account that a stack, or a function of it, could leave."""
    groups = moto.scheduler.schedule_groups.values()
    found = {
        "parameters": moto.ssm._parameters,
        "queues": moto.sqs.queues,
        "roles": [role.name for role in moto.iam.roles.values()],
        "rules": [rule.name for bus in moto.events.event_buses.values() for rule in bus.rules.values()],
        "schedule groups": [group.name for group in groups],
        "schedules": [schedule for group in groups for schedule in group.schedules],
    }
    return {kind: sorted(names) for kind, names in found.items()}


def limits(whole: dict[str, Any], role: str) -> dict[str, int | None]:
    """How the function of a role is invoked; of one that the template lacks there are no limits."""
    logical_id, _ = FUNCTIONS.get(role, ("", ""))
    properties = whole["Resources"].get(logical_id, {}).get("Properties", {})
    config = properties.get("EventInvokeConfig", {})
    return {
        "maximum_retry_attempts": config.get("MaximumRetryAttempts"),
        "maximum_event_age_s": config.get("MaximumEventAgeInSeconds"),
        "reserved_concurrency": properties.get("ReservedConcurrentExecutions"),
    }


def name(logical_id: str) -> str:
    """As CloudFormation names what the template does not."""
    return f"{STACK}-{logical_id}-{SUFFIX}"


def _of_type(whole: dict[str, Any], kind: str) -> Iterator[str]:
    return (logical_id for logical_id, resource in whole["Resources"].items() if resource["Type"] == kind)


def _of_scheduler(whole: dict[str, Any]) -> dict[str, str]:
    """The trust policies of the roles that Scheduler takes."""
    iam_roles = {one: whole["Resources"][one]["Properties"] for one in _of_type(whole, "AWS::IAM::Role")}
    trusts = {one: json.dumps(role["AssumeRolePolicyDocument"]) for one, role in iam_roles.items()}
    return {one: trust for one, trust in trusts.items() if "scheduler.amazonaws.com" in trust}


def _made_of(value: Any, made: Intrinsics, known: dict[str, str]) -> str | None:
    """The stack's name, or a text that has the name of a resource that is known, and of no other."""
    if value == {"Ref": "AWS::StackName"}:
        return STACK
    try:
        text = str(made.value(value))
    except TemplateError:
        return None
    return text if any(name in text for name in known.values()) else None
