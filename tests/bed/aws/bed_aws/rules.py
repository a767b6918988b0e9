"""The product's EventBridge rules: read from its template, put into moto's EventBridge for who lists them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed_aws import moto_quick, stack, template
from bed_aws.moto_side import Moto
from bed_aws.ruler import Ruler
from bed_aws.template import TemplateError

# Stands for the function's ARN: each test has a function of its own.
TARGET_ID = "spillway"
TARGET = "arn:aws:lambda:us-east-1:123456789012:function:spillway"
# What the product's stack is called here: all that a pattern may refer to.
STACK_ID = "arn:aws:cloudformation:us-east-1:123456789012:stack/spillway/00000000-1234-1234-1234-123456789012"


@dataclass(frozen=True)
class Rule:
    logical_id: str
    pattern: dict[str, Any]


def read(path: Path) -> list[Rule]:
    """The rules of a SAM template, or of what the SAM transform made of it."""
    rules = [
        Rule(logical_id, _pattern(logical_id, properties))
        for logical_id, properties in _sources(template.resources(path))
        if properties.get("State", "ENABLED") != "DISABLED"
    ]
    if not rules:
        raise TemplateError(f"{path} has no EventBridge rule")
    return rules


def _sources(resources: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for logical_id, resource in resources.items():
        properties = resource.get("Properties", {})
        # One without a pattern is a schedule.
        if resource["Type"] == "AWS::Events::Rule" and "EventPattern" in properties:
            yield logical_id, {**properties, "Pattern": properties.get("EventPattern")}
        if resource["Type"] == "AWS::Serverless::Function":
            for name, event in properties.get("Events", {}).items():
                if event["Type"] == "EventBridgeRule":
                    # The name that the transform gives the rule.
                    yield logical_id + name, event["Properties"]


def _pattern(logical_id: str, properties: dict[str, Any]) -> dict[str, Any]:
    pattern = _with_stack_id(properties["Pattern"])
    if intrinsic := _intrinsic(pattern):
        raise TemplateError(f"the pattern of {logical_id} has {intrinsic}; the bed resolves nothing but the stack's name, id and account")
    targets = [properties, *properties.get("Targets", [])]
    if any(key in target for target in targets for key in ("Input", "InputPath", "InputTransformer")):
        raise TemplateError(f"{logical_id} changes what its target gets; the bed hands on the event as it is")
    return pattern


def _with_stack_id(value: Any) -> Any:
    if value == {"Ref": "AWS::StackId"}:
        return STACK_ID
    if value == {"Ref": "AWS::StackName"}:
        return stack.STACK
    if value == {"Ref": "AWS::AccountId"}:
        return STACK_ID.split(":")[4]
    if isinstance(value, list):
        return [_with_stack_id(one) for one in value]
    return {key: _with_stack_id(one) for key, one in value.items()} if isinstance(value, dict) else value


def _intrinsic(value: Any) -> str | None:
    """The first CloudFormation function in a value."""
    if isinstance(value, list):
        return next(filter(None, map(_intrinsic, value)), None)
    if not isinstance(value, dict):
        return None
    own = next((key for key in value if key == "Ref" or key.startswith("Fn::")), None)
    return own or _intrinsic(list(value.values()))


def install(rules: list[Rule], moto: Moto) -> Ruler:
    """Puts the rules on the default bus; answers what says which of them let an event through."""
    moto_quick.make_quick()
    put(rules, moto)
    return Ruler({rule.logical_id: rule.pattern for rule in rules})


def put(rules: list[Rule], moto: Moto) -> None:
    for rule in rules:
        moto.events.put_rule(name=rule.logical_id, event_pattern=json.dumps(rule.pattern))
        moto.events.put_targets(name=rule.logical_id, event_bus_arn=None, targets=[{"Id": TARGET_ID, "Arn": TARGET}])


def remove(rules: list[Rule], moto: Moto) -> None:
    for rule in rules:
        moto.events.remove_targets(name=rule.logical_id, event_bus_arn=None, ids=[TARGET_ID])
        moto.events.delete_rule(name=rule.logical_id, event_bus_arn=None)
