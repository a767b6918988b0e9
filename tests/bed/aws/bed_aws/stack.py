"""What the product's stack has for its schedules: the group and the role, from the template, in moto; and the variables
by which the function knows them.
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
    """Makes the schedule groups and Scheduler's roles; answers the function's variables that are made of them."""
    resources = template.resources(path)
    known: dict[str, str] = {}
    for logical_id, resource in resources.items():
        # As CloudFormation names what the template does not.
        name = f"{STACK}-{logical_id}"
        if resource["Type"] == "AWS::Scheduler::ScheduleGroup":
            known[logical_id] = moto.scheduler.create_schedule_group(name, []).name
        elif resource["Type"] == "AWS::IAM::Role" and "scheduler.amazonaws.com" in json.dumps(_trust(resource)):
            role = moto.iam.create_role(name, json.dumps(_trust(resource)), "/", None, "", [], "3600")
            known[f"{logical_id}.Arn"] = role.arn
    return {
        name: text
        for resource in resources.values()
        for name, value in _variables(resource).items()
        if (text := _substituted(value, known)) is not None
    }


def _trust(role: dict[str, Any]) -> dict[str, Any]:
    return role["Properties"]["AssumeRolePolicyDocument"]


def _variables(resource: dict[str, Any]) -> dict[str, Any]:
    return resource.get("Properties", {}).get("Environment", {}).get("Variables", {})


def _substituted(value: Any, known: dict[str, str]) -> str | None:
    """The text of a `!Sub` that names nothing but what is known."""
    text = value.get("Fn::Sub") if isinstance(value, dict) else None
    names = _NAME.findall(text) if isinstance(text, str) else []
    if not names or not known.keys() >= set(names):
        return None
    return _NAME.sub(lambda name: known[name[1]], text)
