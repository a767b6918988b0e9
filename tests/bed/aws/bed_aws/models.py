"""Requests and answers held to AWS' own models of its services, which botocore carries: no member that there is not, none of
another type, none missing. moto reads the requests, botocore the answers.
"""

import json
import re
from functools import cache
from typing import Any
from urllib.parse import unquote

from botocore.model import OperationModel, Shape, StructureShape
from botocore.parsers import create_parser
from botocore.validate import ParamValidator
from moto.core.model import OperationModel as MotoOperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.utils import get_service_model
from werkzeug import Response

from bed_aws import shapes
from bed_aws.call import Call, path_of

# botocore's name of a service, where its requests are signed by another.
SERVICES = {"elasticloadbalancing": "elbv2"}
# What every query has beside its members.
_OF_A_QUERY = {"Action", "Version"}
_PARAMETER = re.compile(r"\{(\w+)\+?\}")


def request_problems(call: Call) -> list[str]:
    """What AWS would not understand of a request."""
    service = SERVICES.get(call.service, call.service)
    operation = _operation(service, call.action)
    body, request = call.request.get_data(), call.request
    parsed = PROTOCOL_PARSERS[operation.service_model.protocol](operation).parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": body,
            "url_path": path_of(request),
            "url_params": _in_path(operation, path_of(request)),
        }
    )
    unknown = _unknown_in_query(operation, request.values) if "Action" in request.values else _unknown_in_json(operation, body)
    return unknown + shapes.violations(service, call.action, parsed) + _of_another_type(parsed, operation.input_shape)


def answer_problems(call: Call, response: Response) -> list[str]:
    """What a client of that service would miss in an answer, or not understand."""
    operation = _operation(SERVICES.get(call.service, call.service), call.action)
    if response.status_code >= 400 or operation.output_shape is None:
        return []
    body = response.get_data()
    answered = {"body": body, "headers": dict(response.headers), "status_code": response.status_code}
    parsed = create_parser(operation.service_model.protocol).parse(answered, operation.output_shape)
    parsed.pop("ResponseMetadata", None)
    is_payload = "payload" in operation.output_shape.serialization
    unknown = _unknown("", json.loads(body), operation.output_shape) if response.is_json and body and not is_payload else []
    return unknown + _of_another_type(parsed, operation.output_shape)


@cache
def _operation(service: str, action: str) -> MotoOperationModel:
    return get_service_model(service).operation_model(action)


def _of_another_type(given: Any, shape: Shape | None) -> list[str]:
    if shape is None:
        return []
    report = ParamValidator().validate(given, shape)
    return [report.generate_report()] if report.has_errors() else []


def _in_path(operation: OperationModel, path: str) -> dict[str, str]:
    template = operation.http["requestUri"].partition("?")[0]
    names = _PARAMETER.findall(template)
    pattern = _PARAMETER.sub(lambda found: "(.+)" if found[0].endswith("+}") else "([^/]+)", template)
    found = re.fullmatch(pattern, path)
    return dict(zip(names, map(unquote, found.groups()), strict=True)) if found else {}


def _unknown_in_query(operation: OperationModel, values: Any) -> list[str]:
    members = operation.input_shape.members if operation.input_shape else {}
    names = set(_OF_A_QUERY)
    for name, shape in members.items():
        by_wire = shape.serialization.get("queryName") or shape.serialization.get("name", name)
        names |= {name, by_wire, by_wire[0].upper() + by_wire[1:]}
    return [f"{operation.name} has no member {key}" for key in values if key.partition(".")[0] not in names]


def _unknown_in_json(operation: OperationModel, body: bytes) -> list[str]:
    shape = operation.input_shape
    # What is no JSON is a payload: a function's event, an object.
    if not body or shape is None or "payload" in shape.serialization:
        return []
    return _unknown("", json.loads(body), shape)


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
