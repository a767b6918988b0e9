"""AWS errors, each in the shape of its service's protocol; and the errors of the bed's own API."""

import json
import uuid
from typing import Literal
from xml.sax.saxutils import escape

from werkzeug import Response

Protocol = Literal["ec2", "query", "json"]


class AwsError(Exception):
    """What AWS answers instead of a result."""

    def __init__(self, status: int, code: str, message: str, protocol: Protocol | None = None) -> None:
        """`protocol`: the service's, where it does not follow from how it was called."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self._protocol = protocol

    def response(self, protocol: Protocol) -> Response:
        protocol = self._protocol or protocol
        request_id = str(uuid.uuid4())
        headers = {"x-amzn-requestid": request_id}
        code, message = escape(self.code), escape(self.message)
        if protocol == "json":
            headers["x-amzn-errortype"] = self.code
            text = json.dumps({"__type": self.code, "message": self.message})
            return Response(text, self.status, headers, mimetype="application/json")
        if protocol == "ec2":
            text = (
                f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
                f"<RequestID>{request_id}</RequestID></Response>"
            )
        else:
            fault = "Sender" if self.status < 500 else "Receiver"
            text = (
                f"<ErrorResponse><Error><Type>{fault}</Type><Code>{code}</Code><Message>{message}</Message></Error>"
                f"<RequestId>{request_id}</RequestId></ErrorResponse>"
            )
        return Response(text, self.status, headers, mimetype="text/xml")


class BedError(Exception):
    """A request to /bed/… that makes no sense: the tester's mistake, answered with 4xx."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
