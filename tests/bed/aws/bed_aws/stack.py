"""What the bed makes of the product's stack, in moto: the schedule group, Scheduler's role and the queues, from the template;
and the variables by which the function knows them. Deleting the stack takes them away.
"""

import json
from pathlib import Path
from typing import Any

from bed_aws import template
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from bed_aws.template import TemplateError

STACK = "spillway"
# CloudFormation ends each name that it makes with twelve random characters.
SUFFIX = "1A2B3C4D5E6F"


def install(path: Path, moto: Moto, parameters: dict[str, str] | None = None) -> dict[str, str]:
    """Makes the schedule groups, Scheduler's roles and the queues; answers the function's variables made of them."""
    whole = template.read(path)
    resources, arns = whole["Resources"], (parameters or {}).get("RoleArns", "")
    known = {} if arns else roles(whole, moto, STACK)
    for logical_id, resource in resources.items():
        if resource["Type"] == "AWS::Scheduler::ScheduleGroup":
            known[logical_id] = moto.scheduler.create_schedule_group(name(logical_id), []).name
        elif resource["Type"] == "AWS::SQS::Queue":
            known[f"{logical_id}.Arn"] = moto.sqs.create_queue(name(logical_id)).queue_arn
    made = Intrinsics(whole, {"RoleArns": arns}, known)
    return {
        variable: text
        for variable, value in _variables(resources["Drain"]).items()
        if (text := _made_of(value, made, known)) is not None
    }


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


def remove(path: Path, moto: Moto) -> None:
    """What CloudFormation deletes with the stack. A schedule group goes with its schedules, a queue with its messages."""
    remove_roles(template.read(path), moto, STACK)
    for logical_id, resource in template.resources(path).items():
        if resource["Type"] == "AWS::Scheduler::ScheduleGroup":
            moto.scheduler.delete_schedule_group(name(logical_id))
        elif resource["Type"] == "AWS::SQS::Queue":
            moto.sqs.delete_queue(name(logical_id))


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


def name(logical_id: str) -> str:
    """As CloudFormation names what the template does not."""
    return f"{STACK}-{logical_id}-{SUFFIX}"


def _of_scheduler(whole: dict[str, Any]) -> dict[str, str]:
    """The trust policies of the roles that Scheduler takes."""
    iam_roles = {name: one for name, one in whole["Resources"].items() if one["Type"] == "AWS::IAM::Role"}
    trusts = {name: json.dumps(one["Properties"]["AssumeRolePolicyDocument"]) for name, one in iam_roles.items()}
    return {name: trust for name, trust in trusts.items() if "scheduler.amazonaws.com" in trust}


def _variables(resource: dict[str, Any]) -> dict[str, Any]:
    return resource["Properties"].get("Environment", {}).get("Variables", {})


def _made_of(value: Any, made: Intrinsics, known: dict[str, str]) -> str | None:
    """The stack's name, or a text that has the name of a resource that is known, and of no other."""
    if value == {"Ref": "AWS::StackName"}:
        return STACK
    try:
        text = str(made.value(value))
    except TemplateError:
        return None
    return text if any(name in text for name in known.values()) else None
