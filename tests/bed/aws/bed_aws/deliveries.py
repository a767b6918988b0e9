"""Stand-in for how EventBridge hands an event to the function that a rule leads to: tried again while Lambda refuses it, by
the rule's retry policy, and then put into the rule's dead-letter queue.

What Lambda refuses is told with the event. No time passes: an event that was refused for a minute comes at once, so its
sender gives it a time a minute ago.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed_aws import rules, stack, template
from bed_aws.errors import BedError
from bed_aws.moto_side import Moto
from bed_aws.retry_policy import Delivered, GivenUp, Refusal, RetryPolicy, outcome
from bed_aws.template import TemplateError


@dataclass(frozen=True)
class Target:
    """What a rule says of how its target is served."""

    policy: RetryPolicy
    dead_letters: str | None
    """The name of the queue."""


class Deliveries:
    def __init__(self, path: Path, moto: Moto) -> None:
        self._targets = read(path)
        self._moto = moto

    def deliver(self, matched: list[dict[str, Any]], refusals: list[Refusal]) -> list[dict[str, Any]]:
        """What gets to the function of what rules have let through; the rest is dead letters."""
        delivered = []
        for one in matched:
            target = self._targets[one["rule"]]
            result = outcome(target.policy, refusals)
            if isinstance(result, Delivered):
                delivered.append(one)
            elif target.dead_letters:
                self._bury(one, result, target.dead_letters)
        return delivered

    def dead_letters(self, queue: str) -> list[dict[str, Any]]:
        """The events in a queue that EventBridge has put there, with what it says of each."""
        return [
            {"event": json.loads(message.body), "attributes": {name: one["string_value"] for name, one in attributes.items()}}
            for message in self._moto.sqs.get_queue(stack.name(queue)).messages
            if "RULE_ARN" in (attributes := message.message_attributes)
        ]

    def _bury(self, one: dict[str, Any], given_up: GivenUp, queue: str) -> None:
        where = f"{self._moto.region}:{self._moto.account}"
        attributes = {
            "RULE_ARN": f"arn:aws:events:{where}:rule/{stack.name(one['rule'])}",
            "TARGET_ARN": f"arn:aws:lambda:{where}:function:{stack.name('Drain')}",
            "ERROR_CODE": given_up.code,
            "ERROR_MESSAGE": given_up.refusal.message,
            "RETRY_ATTEMPTS": str(given_up.retry_attempts),
        }
        if given_up.exhausted:
            attributes["EXHAUSTED_RETRY_CONDITION"] = given_up.exhausted
        texts = {name: {"data_type": "String", "string_value": text} for name, text in attributes.items()}
        self._moto.sqs.send_message(queue, json.dumps(one["event"]), message_attributes=texts)


def refusal(status: int, message: str, until_s: float | None = None) -> Refusal:
    """One that a test tells; for ever, if it says no time."""
    if not 400 <= status < 600:
        raise BedError(f"{status} is no refusal")
    return Refusal(status, message) if until_s is None else Refusal(status, message, until_s)


def read(path: Path) -> dict[str, Target]:
    """Of each rule of a template."""
    return {rule: _target(rule, said) for rule, said in _said(template.resources(path))}


def _said(resources: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What SAM's form has beside the pattern, CloudFormation's has in the rule's target."""
    written = [(name, resource["Type"], resource.get("Properties", {})) for name, resource in resources.items()]
    of_functions = [
        (function + name, event["Properties"])
        for function, kind, properties in written
        if kind == "AWS::Serverless::Function"
        for name, event in properties.get("Events", {}).items()
        if event["Type"] == "EventBridgeRule"
    ]
    by_themselves = [
        (name, next(iter(properties.get("Targets", [])), {}))
        for name, kind, properties in written
        if kind == "AWS::Events::Rule"
    ]
    return of_functions + by_themselves


def _target(rule: str, said: dict[str, Any]) -> Target:
    policy = said.get("RetryPolicy", {})
    defaults = RetryPolicy()
    age_s = policy.get("MaximumEventAgeInSeconds", defaults.maximum_event_age_s)
    attempts = policy.get("MaximumRetryAttempts", defaults.maximum_retry_attempts)
    if not (60 <= age_s <= 86400 and 0 <= attempts <= 185):
        raise TemplateError(f"EventBridge does not take the retry policy of {rule}: {policy}")
    match said.get("DeadLetterConfig"):
        case None:
            queue = None
        case {"Arn": {"Fn::GetAtt": str(attribute)}}:
            queue = stack.name(attribute.removesuffix(".Arn"))
        case other:
            raise TemplateError(f"the bed does not know the dead-letter queue of {rule}: {other}")
    return Target(RetryPolicy(age_s, attempts), queue)
