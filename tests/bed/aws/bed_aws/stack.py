"""What the product's stack has for its schedules: the group, the role and the failure queue, from the template, in moto;
and the variables by which the function knows them.
"""

import json
import re
from pathlib import Path
from typing import Any

from bed_aws import template
from bed_aws.moto_side import Moto

STACK = "spillway"
_NAME = re.compile(r"\$\{([^}]+)\}")


def install(path: Path, moto: Moto) -> dict[str, str]:
    """Makes the schedule groups, Scheduler's roles and the queues; answers the function's variables made of them."""
    resources = template.resources(path)
    known: dict[str, str] = {}
    for logical_id, resource in resources.items():
        if resource["Type"] == "AWS::Scheduler::ScheduleGroup":
            known[logical_id] = moto.scheduler.create_schedule_group(name(logical_id), []).name
        elif resource["Type"] == "AWS::IAM::Role" and "scheduler.amazonaws.com" in json.dumps(_trust(resource)):
            role = moto.iam.create_role(name(logical_id), json.dumps(_trust(resource)), "/", None, "", [], "3600")
            known[f"{logical_id}.Arn"] = role.arn
        elif resource["Type"] == "AWS::SQS::Queue":
            known[f"{logical_id}.Arn"] = moto.sqs.create_queue(name(logical_id)).queue_arn
    return {
        variable: text
        for resource in resources.values()
        for variable, value in _variables(resource).items()
        if (text := _substituted(value, known)) is not None
    }


def name(logical_id: str) -> str:
    """As CloudFormation names what the template does not."""
    return f"{STACK}-{logical_id}"


def _trust(role: dict[str, Any]) -> dict[str, Any]:
    return role["Properties"]["AssumeRolePolicyDocument"]


def _variables(resource: dict[str, Any]) -> dict[str, Any]:
    return resource.get("Properties", {}).get("Environment", {}).get("Variables", {})


def _substituted(value: Any, known: dict[str, str]) -> str | None:
    """The stack's name, or the text of a `!Sub` that names nothing but what is known."""
    if value == {"Ref": "AWS::StackName"}:
        return STACK
    text = value.get("Fn::Sub") if isinstance(value, dict) else None
    names = _NAME.findall(text) if isinstance(text, str) else []
    if not names or not known.keys() >= set(names):
        return None
    return _NAME.sub(lambda found: known[found[1]], text)
