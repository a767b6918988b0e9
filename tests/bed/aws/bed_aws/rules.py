"""The product's EventBridge rules: read from its template, put into moto's EventBridge for who lists them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed_aws import moto_quick, stack, template
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from bed_aws.ruler import Ruler
from bed_aws.template import TemplateError

# Stands for the function's ARN: each test has a function of its own.
TARGET_ID = "spillway"
TARGET = "arn:aws:lambda:us-east-1:123456789012:function:spillway"
STACK_ID = "arn:aws:cloudformation:us-east-1:123456789012:stack/spillway/00000000-1234-1234-1234-123456789012"
# All that a pattern may refer to.
KNOWN = {"AWS::AccountId": "123456789012", "AWS::StackId": STACK_ID, "AWS::StackName": stack.STACK}
# Parameters of a stack whose rules let all their events through: a function of the bed has settings of its own.
WIDEST = {"DrainOn": "spot,capacity,maintenance,state-change,terminate,rebalance", "Taints": "out-of-service"}


@dataclass(frozen=True)
class Rule:
    logical_id: str
    pattern: dict[str, Any]


def read(path: Path) -> list[Rule]:
    """The rules of a SAM template, or of what the SAM transform made of it."""
    whole = template.read(path)
    stacks = Intrinsics(whole, WIDEST, KNOWN)
    rules = [
        Rule(logical_id, _pattern(logical_id, properties, stacks))
        for logical_id, properties in _sources(whole["Resources"])
        if stacks.value(properties.get("State", "ENABLED")) != "DISABLED"
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


def _pattern(logical_id: str, properties: dict[str, Any], stacks: Intrinsics) -> dict[str, Any]:
    targets = [properties, *properties.get("Targets", [])]
    if any(key in target for target in targets for key in ("Input", "InputPath", "InputTransformer")):
        raise TemplateError(f"{logical_id} changes what its target gets; the bed hands on the event as it is")
    pattern: dict[str, Any] = stacks.value(properties["Pattern"])
    return pattern


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
