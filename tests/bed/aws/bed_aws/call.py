"""Which service, action and caller an AWS request is."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from botocore.exceptions import UnknownServiceError
from botocore.loaders import create_loader
from werkzeug import Request

from bed_aws.errors import Protocol

_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")


@dataclass(frozen=True)
class Call:
    request: Request
    service: str
    """The signing name: `ec2`, `eks`, `autoscaling`. Empty when the request is not signed."""
    action: str
    access_key_id: str
    region: str

    @classmethod
    def of(cls, request: Request) -> "Call":
        signed = request.headers.get("Authorization") or "Credential=" + request.args.get("X-Amz-Credential", "")
        scope = _CREDENTIAL.search(signed)
        access_key_id, region, service = scope.groups() if scope else ("", "", "")
        return cls(request, service, _action(request, service), access_key_id, region)

    @property
    def protocol(self) -> Protocol:
        if self.service == "ec2":
            return "ec2"
        return "query" if "Action" in self.request.values else "json"


def _action(request: Request, service: str) -> str:
    if target := request.headers.get("X-Amz-Target"):
        return target.rpartition(".")[2]
    if action := request.values.get("Action"):
        return action
    for operation in _rest_operations(service):
        if operation.is_meant_by(request):
            return operation.name
    return f"{request.method} {request.path}"


def path_of(request: Request) -> str:
    """As it was sent: a parameter may have slashes, which are no part of the path."""
    path: str = request.environ.get("RAW_URI", request.path).partition("?")[0]
    return path


@dataclass(frozen=True)
class _Operation:
    """An action of a REST service: how a request says that it means this one."""

    name: str
    method: str
    path: re.Pattern[str]
    headers: frozenset[str]
    query: frozenset[str]

    def is_meant_by(self, request: Request) -> bool:
        return (
            request.method == self.method
            and self.path.fullmatch(path_of(request)) is not None
            and all(header in request.headers for header in self.headers)
            and self.query <= request.args.keys()
        )


@cache
def _rest_operations(service: str) -> list[_Operation]:
    """A REST service has its actions in method and path, and in what must be there; botocore's model of it says how."""
    try:
        model = create_loader().load_service_model(service, "service-2")
    except UnknownServiceError:
        return []
    return [_operation(name, operation, model["shapes"]) for name, operation in model["operations"].items()]


def _operation(name: str, operation: dict[str, Any], shapes: dict[str, Any]) -> _Operation:
    path, _, query = operation["http"]["requestUri"].partition("?")
    shape = shapes[operation["input"]["shape"]] if "input" in operation else {}
    needed = [shape["members"][member] for member in shape.get("required", [])]

    def where(place: str) -> frozenset[str]:
        return frozenset(member["locationName"] for member in needed if member.get("location") == place)

    in_uri = {part.partition("=")[0] for part in query.split("&") if part}
    return _Operation(name, operation["http"]["method"], _path_pattern(path), where("header"), where("querystring") | in_uri)


def _path_pattern(path: str) -> re.Pattern[str]:
    """`/clusters/{name}` takes one segment for its parameter, `{key+}` takes several."""
    path = re.escape(path)
    path = re.sub(r"\\\{\w+\\\+\\\}", ".+", path)
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", path))
