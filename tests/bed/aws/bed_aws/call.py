"""Which service, action and caller an AWS request is, and what it asks for by AWS' model of the service."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from botocore.exceptions import UnknownServiceError
from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request
from moto.core.routing import get_service_router
from werkzeug.exceptions import NotFound

_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")
# The model's name of a service, where its requests are signed by another.
MODELS = {"elasticloadbalancing": "elbv2"}


@dataclass(frozen=True)
class Call:
    request: Request
    service: str
    """The signing name: `ec2`, `eks`, `autoscaling`. Empty when the request is not signed."""
    access_key_id: str
    region: str

    @classmethod
    def of(cls, request: Request) -> "Call":
        signed = request.headers.get("Authorization") or "Credential=" + request.args.get("X-Amz-Credential", "")
        scope = _CREDENTIAL.search(signed)
        access_key_id, region, service = scope.groups() if scope else ("", "", "")
        return cls(request, service, access_key_id, region)

    @cached_property
    def _matched(self) -> tuple[OperationModel, dict[str, Any]]:
        """The operation, and the parameters in the path."""
        return get_service_router(MODELS.get(self.service, self.service)).match(self.request)

    @property
    def operation(self) -> OperationModel:
        return self._matched[0]

    @property
    def action(self) -> str:
        """Empty when the service has no such action."""
        try:
            return str(self.operation.name)
        except (NotFound, UnknownServiceError):
            return ""

    @property
    def protocol(self) -> str:
        return str(self.operation.service_model.protocol)

    @cached_property
    def asked(self) -> dict[str, Any]:
        """The members of the input, by their names in the model."""
        operation, in_path = self._matched
        request = self.request
        return PROTOCOL_PARSERS[self.protocol](operation).parse(
            {
                "method": request.method,
                "values": request.values,
                "headers": request.headers,
                "body": request.get_data(),
                "url_path": request.raw_path,
                "url_params": in_path,
            }
        )
