"""Which service, action and caller an AWS request is."""

import re
from dataclasses import dataclass
from functools import cache

from botocore.exceptions import UnknownServiceError
from botocore.loaders import create_loader
from werkzeug import Request

from bed_aws.errors import Protocol

_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/[^/]+/([^/]+)/aws4_request")


@dataclass(frozen=True)
class Call:
    request: Request
    service: str
    """The signing name: `ec2`, `eks`, `autoscaling`. Empty when the request is not signed."""
    action: str
    access_key_id: str

    @classmethod
    def of(cls, request: Request) -> "Call":
        signed = request.headers.get("Authorization") or "Credential=" + request.args.get("X-Amz-Credential", "")
        scope = _CREDENTIAL.search(signed)
        access_key_id, service = scope.groups() if scope else ("", "")
        return cls(request, service, _action(request, service), access_key_id)

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
    for name, method, path in _rest_operations(service):
        if request.method == method and path.fullmatch(request.path):
            return name
    return f"{request.method} {request.path}"


@cache
def _rest_operations(service: str) -> list[tuple[str, str, re.Pattern[str]]]:
    """A REST service has its actions in method and path; botocore's model of it says how."""
    try:
        model = create_loader().load_service_model(service, "service-2")
    except UnknownServiceError:
        return []
    return [
        (name, operation["http"]["method"], _path_pattern(operation["http"]["requestUri"]))
        for name, operation in model["operations"].items()
    ]


def _path_pattern(request_uri: str) -> re.Pattern[str]:
    """`/clusters/{name}` takes one segment for its parameter, `{key+}` takes several."""
    path = re.escape(request_uri.partition("?")[0])
    path = re.sub(r"\\\{\w+\\\+\\\}", ".+", path)
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", path))
