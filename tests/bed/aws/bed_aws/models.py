"""Requests and answers held to AWS' own models of its services, which botocore carries: no member that there is not, none of
another type, none missing. moto reads the requests and writes the answers.
"""

import json
import re
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.model import OperationModel, Shape, StructureShape
from botocore.validate import ParamValidator
from moto.core.serialize import SerializationContext, get_serializer_class
from werkzeug import Response

from bed_aws.call import Call
from bed_aws.errors import AwsError

# What every query has beside its members.
_OF_A_QUERY = {"Action", "Version"}
Result = dict[str, Any]


def request_problems(call: Call) -> list[str]:
    """What AWS would not understand of a request."""
    operation, asked = call.operation, call.asked
    is_query = "Action" in call.request.values
    unknown = _unknown_in_query(operation, call) if is_query else _unknown_in_json(operation, call)
    if operation.input_shape is None:
        return unknown
    # SQS takes the names that its documentation lists; its model has those of a queue, of which SentTimestamp is none.
    is_receive = (call.service, call.action) == ("sqs", "ReceiveMessage")
    judged = {name: value for name, value in asked.items() if not (is_receive and name == "AttributeNames")}
    violations = list(_violations(operation.input_shape, judged, ""))
    return unknown + violations + _of_another_type(asked, operation.input_shape)


def answer(call: Call, result: Result | AwsError) -> Response:
    """A result or an error in the service's protocol; a TypeError if the model has no such result."""
    if isinstance(result, dict) and (problems := _of_another_type(result, call.operation.output_shape)):
        raise TypeError(f"the stand-in for {call.service}:{call.action}: {problems}")
    context = SerializationContext(str(uuid.uuid4()))
    serializer = get_serializer_class(call.operation.service_model.service_name, call.protocol)(call.operation, context)
    made = serializer.serialize(result)
    status = result.status if isinstance(result, AwsError) else made["status_code"]
    return Response(made["body"], status, {**made["headers"], "x-amzn-requestid": context.request_id})


def _of_another_type(given: Any, shape: Shape | None) -> list[str]:
    if shape is None:
        return []
    report = ParamValidator().validate(given, shape)
    return [report.generate_report()] if report.has_errors() else []


def _violations(shape: Shape, given: Any, path: str) -> Iterator[str]:
    """What AWS would find wrong before it looks at anything else, in its words."""
    if isinstance(shape, StructureShape) and isinstance(given, dict):
        for name in shape.required_members:
            if given.get(name) is None:
                yield f"Value null at '{_below(path, name)}' failed to satisfy constraint: Member must not be null"
        for name, value in given.items():
            if value is not None:
                yield from _violations(shape.members[name], value, _below(path, name))
    elif shape.type_name == "list":
        yield from (f"Value at '{path}' failed to satisfy constraint: {broken}" for broken in _of_length(shape, given))
        for number, one in enumerate(given, 1):
            yield from _violations(shape.member, one, f"{path}.{number}.member")
    elif shape.type_name == "string":
        limits = shape.metadata
        broken = _of_length(shape, given)
        if "pattern" in limits and not _matches(limits["pattern"], given):
            broken.append(f"Member must satisfy regular expression pattern: {limits['pattern']}")
        if "enum" in limits and given not in limits["enum"]:
            broken.append(f"Member must satisfy enum value set: [{', '.join(limits['enum'])}]")
        yield from (f"Value '{given}' at '{path}' failed to satisfy constraint: {constraint}" for constraint in broken)


def _of_length(shape: Shape, given: Any) -> list[str]:
    least, most = shape.metadata.get("min", 0), shape.metadata.get("max", len(given))
    short = [f"Member must have length greater than or equal to {least}"] if len(given) < least else []
    return short + ([f"Member must have length less than or equal to {most}"] if len(given) > most else [])


@cache
def _pattern(pattern: str) -> re.Pattern[str] | None:
    """Some are Java's, with surrogates in a range, which Python does not read: they hold for everything."""
    try:
        return re.compile(pattern)
    except re.error:
        return None


def _matches(pattern: str, given: str) -> bool:
    compiled = _pattern(pattern)
    return compiled is None or compiled.search(given) is not None


def _below(path: str, member: str) -> str:
    """AWS writes members in lower camel case: `target.roleArn`."""
    member = member[0].lower() + member[1:]
    return f"{path}.{member}" if path else member


def _unknown_in_query(operation: OperationModel, call: Call) -> list[str]:
    members = operation.input_shape.members if operation.input_shape else {}
    names = set(_OF_A_QUERY)
    for name, shape in members.items():
        by_wire = shape.serialization.get("queryName") or shape.serialization.get("name", name)
        names |= {name, by_wire, by_wire[0].upper() + by_wire[1:]}
    unknown = [key for key in call.request.values if key.partition(".")[0] not in names]
    return [f"{operation.name} has no member {key}" for key in unknown]


def _unknown_in_json(operation: OperationModel, call: Call) -> list[str]:
    body, shape = call.request.get_data(), operation.input_shape
    # What is no JSON is a payload: a function's event, an object.
    is_payload = shape is not None and "payload" in shape.serialization
    return [] if not body or shape is None or is_payload else _unknown("", json.loads(body), shape)


def _unknown(path: str, given: Any, shape: Shape) -> list[str]:
    """The members that a model does not have, by their places."""
    if isinstance(shape, StructureShape) and isinstance(given, dict):
        by_wire = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        found = [f"there is no member {path}{name}" for name in given if name not in by_wire and name != "__type"]
        known = [(name, value) for name, value in given.items() if name in by_wire and value is not None]
        return found + [one for name, value in known for one in _unknown(f"{path}{name}.", value, by_wire[name])]
    if shape.type_name == "list" and isinstance(given, list):
        return [one for number, value in enumerate(given) for one in _unknown(f"{path}{number}.", value, shape.member)]
    return []
