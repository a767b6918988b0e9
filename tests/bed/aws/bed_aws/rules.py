"""The product's EventBridge rules, from its template, and the event bus as whoever lists its rules sees it: the product's
rules lead to the function that asks, and others may have rules of their own.

In moto the product's rules lead to a function that is not there.
"""

import json
from collections.abc import Iterator
from typing import Any

from bed_aws.call import Call
from bed_aws.errors import BedError
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from bed_aws.template import TemplateError

STACK = "spillway"
# Stands for the function's ARN: each test has a function of its own.
TARGET_ID = "spillway"
TARGET = "arn:aws:lambda:us-east-1:123456789012:function:spillway"
STACK_ID = "arn:aws:cloudformation:us-east-1:123456789012:stack/spillway/00000000-1234-1234-1234-123456789012"
# All that a pattern may refer to.
KNOWN = {"AWS::AccountId": "123456789012", "AWS::StackId": STACK_ID, "AWS::StackName": STACK}
# Parameters of a stack whose rules let all their events through: a function of the bed has settings of its own.
WIDEST = {"DrainOn": "spot,capacity,maintenance,state-change,terminate,rebalance", "Taints": "out-of-service"}
# A pattern by its rule's name.
Rules = dict[str, dict[str, Any]]


def read(whole: dict[str, Any]) -> Rules:
    """The rules of a SAM template, or of what the SAM transform made of it."""
    stack, rules = Intrinsics(whole, WIDEST, KNOWN), {}
    for name, properties in _sources(whole["Resources"]):
        targets = [properties, *properties.get("Targets", [])]
        if any(key in target for target in targets for key in ("Input", "InputPath", "InputTransformer")):
            raise TemplateError(f"{name} changes what its target gets; the bed hands on the event as it is")
        if stack.value(properties.get("State", "ENABLED")) != "DISABLED":
            rules[name] = stack.value(properties["Pattern"])
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


def put(rules: Rules, moto: Moto, target: str = TARGET) -> None:
    for name, pattern in rules.items():
        moto.events.put_rule(name=name, event_pattern=json.dumps(pattern))
        moto.events.put_targets(name=name, event_bus_arn=None, targets=[{"Id": TARGET_ID, "Arn": target}])


def remove(rules: Rules, moto: Moto) -> None:
    for name in rules:
        moto.events.remove_targets(name=name, event_bus_arn=None, ids=[TARGET_ID])
        moto.events.delete_rule(name=name, event_bus_arn=None)


class Bus:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto

    def answer(self, call: Call) -> dict[str, Any] | None:
        if call.action != "ListTargetsByRule":
            return None
        targets, _ = self._moto.events.list_targets_by_rule(call.asked["Rule"], call.asked.get("EventBusName"))
        own = self._moto.function(self._moto.session(call.access_key_id))
        return {"Targets": [{**one, "Arn": own if one["Arn"] == TARGET else one["Arn"]} for one in targets]}

    def put_rule(self, name: str, pattern: dict[str, Any], target: str) -> None:
        """Somebody else's rule."""
        put({name: pattern}, self._moto, target)

    def delete_rule(self, name: str) -> None:
        remove({name: {}}, self._moto)

    def switch_rule(self, name: str, state: str) -> None:
        switch = self._moto.events.enable_rule if state == "ENABLED" else self._moto.events.disable_rule
        if not switch(name, None):
            raise BedError(f"no rule {name}", 404)
