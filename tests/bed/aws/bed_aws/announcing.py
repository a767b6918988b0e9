"""What the product's stack has around the function that sends messages, from its template: the queue, the one behind it,
how Lambda is to poll it, and what the function is told. Each test that wants one gets one of its own.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from werkzeug import Response

from bed_aws import stack, template
from bed_aws.call import Call
from bed_aws.errors import BedError
from bed_aws.moto_side import Moto
from bed_aws.template import TemplateError


@dataclass(frozen=True)
class Plan:
    """As the template has it."""

    queue: str
    """Its name in the template's stack, by which the function that fills it knows it."""
    visibility_timeout_s: int
    most_receives: int
    batch_size: int
    window_s: float
    timeout_s: int
    variables: dict[str, Any]
    defaults: dict[str, str]
    """The parameters, and what they are if nobody gives them."""


class Announcing:
    def __init__(self, plan: Plan, moto: Moto) -> None:
        self._plan = plan
        self._moto = moto
        self._queues: dict[str, str] = {}
        """The queue of each sender who has one."""

    def answer(self, call: Call) -> Response | None:
        """A message of a sender who has a queue goes into that: all functions know the one of the template."""
        if call.action != "SendMessage":
            return None
        asked = json.loads(call.request.get_data())
        queue = asked["QueueUrl"].rpartition("/")[2]
        if queue == self._plan.queue:
            queue = self._queues.get(call.access_key_id, queue)
        sent = self._moto.sqs.send_message(queue, asked["MessageBody"], delay_seconds=asked.get("DelaySeconds"))
        text = json.dumps({"MessageId": sent.id, "MD5OfMessageBody": sent.body_md5})
        return Response(text, mimetype="application/x-amz-json-1.0")

    def deploy(self, sender: str, name: str, parameters: dict[str, str]) -> dict[str, Any]:
        """Makes the queues of one stack, which this sender's messages go to."""
        plan = self._plan
        if unknown := parameters.keys() - plan.defaults.keys():
            raise BedError(f"the template has no parameter {', '.join(sorted(unknown))}")
        undelivered = self._moto.sqs.create_queue(f"{name}-undelivered")
        redrive = {"deadLetterTargetArn": undelivered.queue_arn, "maxReceiveCount": plan.most_receives}
        queue = self._moto.sqs.create_queue(
            f"{name}-announcements", VisibilityTimeout=str(plan.visibility_timeout_s), RedrivePolicy=redrive
        )
        self._queues[sender] = queue.name
        return {
            "queue": queue.name,
            "undelivered": undelivered.name,
            "batch_size": plan.batch_size,
            "window_s": plan.window_s,
            "timeout_s": plan.timeout_s,
            "variables": _resolved(plan.variables, plan.defaults | parameters, queue.queue_arn),
        }


def read(path: Path) -> Plan:
    """From a template as it is written: the function that the queue of messages invokes, and what is before and behind it."""
    resources = template.resources(path)
    found = [
        (resource["Properties"], event["Properties"])
        for resource in resources.values()
        if resource["Type"] == "AWS::Serverless::Function"
        for event in resource["Properties"].get("Events", {}).values()
        if event["Type"] == "SQS"
    ]
    if len(found) != 1:
        raise TemplateError(f"{path} has {len(found)} functions that messages invoke")
    [(function, polled)] = found
    queue = resources[_named(polled["Queue"])]["Properties"]
    return Plan(
        stack.name(_named(polled["Queue"])),
        visibility_timeout_s=queue["VisibilityTimeout"],
        most_receives=queue["RedrivePolicy"]["maxReceiveCount"],
        batch_size=polled["BatchSize"],
        window_s=polled["MaximumBatchingWindowInSeconds"],
        timeout_s=function["Timeout"],
        variables=function["Environment"]["Variables"],
        defaults={name: str(one.get("Default", "")) for name, one in template.parameters(path).items()},
    )


def _named(attribute: dict[str, str]) -> str:
    """The resource of `!GetAtt Resource.Arn`."""
    return attribute["Fn::GetAtt"].partition(".")[0]


def _resolved(variables: dict[str, Any], parameters: dict[str, str], queue_arn: str) -> dict[str, str]:
    """The function's settings. Its other variables are about places that a machine need not have."""
    settings = {name: value for name, value in variables.items() if name.startswith("SPILLWAY_")}

    def resolved(value: Any) -> str:
        match value:
            case str():
                return value
            case {"Ref": named}:
                return parameters.get(named, stack.name(named))
            case {"Fn::GetAtt": _}:
                return queue_arn
        raise TemplateError(f"{value} is no parameter, and not the queue's ARN")

    return {name: resolved(value) for name, value in settings.items()}
