"""Stand-in for Lambda's Invoke: who may ask for which function, what is too long, and what is queued for it; and for
GetAccountSettings, which moto lacks: an account with the usual limit.

The function itself is driven by the test (`tests/bed/src/lambda`), which takes what waits here. A function is its session:
credentials of the function's role under its name. May it invoke itself, it may no other.
"""

import json
import re
from typing import Any

from werkzeug import Response

from bed_aws import shapes
from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.moto_side import Moto
from bed_aws.notices import Notices

LONGEST = 1024 * 1024
USUAL_LIMIT = 1000
INVOKED = "Invoke"
"""Where another delivery has the name of its rule."""
_ARN = re.compile(r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:([a-zA-Z0-9-_.]+)")


class Invocations:
    def __init__(self, moto: Moto, notices: Notices) -> None:
        self._moto = moto
        self._notices = notices

    def answer(self, call: Call) -> Response | None:
        if call.action == "GetAccountSettings":
            limit = {"ConcurrentExecutions": USUAL_LIMIT, "UnreservedConcurrentExecutions": USUAL_LIMIT}
            return Response(json.dumps({"AccountLimit": limit}), mimetype="application/json")
        if call.action != "Invoke":
            return None
        name = call.request.path.split("/")[3]
        how = call.request.headers.get("X-Amz-Invocation-Type", "RequestResponse")
        if violations := shapes.violations("lambda", "Invoke", {"FunctionName": name, "InvocationType": how}):
            raise AwsError(400, "ValidationException", f"1 validation error detected: {violations[0]}")
        self.check(call.access_key_id, name)
        if how == "DryRun":
            return Response(status=204)
        if how != "Event":
            raise AwsError(501, "NotImplementedException", "this stand-in for Lambda takes asynchronous invocations only")
        self.queue(call.access_key_id, call.request.get_data())
        return Response(status=202)

    def check(self, access_key_id: str, name: str) -> None:
        """Raises an AwsError unless the caller is that very function."""
        caller = self._moto.sts.get_assumed_role_from_access_key(access_key_id)
        own = caller.session_name if caller else ""
        if name != own:
            arn = f"arn:aws:lambda:{self._moto.region}:{self._moto.account}:function:{name}"
            who = f"arn:aws:sts::{self._moto.account}:assumed-role/{caller.role_arn.rpartition('/')[2]}/{own}"
            message = f"User: {who} is not authorized to perform: lambda:InvokeFunction on resource: {arn}"
            raise AwsError(403, "AccessDeniedException", message)

    def queue(self, access_key_id: str, payload: bytes) -> None:
        """Keeps a payload for the function, as if its queue had delivered it."""
        if len(payload) > LONGEST:
            message = f"{len(payload)} byte payload is too large for the Event invocation type (limit {LONGEST} bytes)"
            raise AwsError(413, "RequestTooLargeException", message)
        try:
            event: Any = json.loads(payload)
        except ValueError as error:
            message = f"Could not parse request body into json: {error}"
            raise AwsError(400, "InvalidRequestContentException", message) from None
        self._notices.keep(access_key_id, [{"rule": INVOKED, "event": event}])

    def fire(self, access_key_id: str, arn: str, payload: str) -> None:
        """What Scheduler does for who has made a schedule; an AwsError if its role may not."""
        name = _ARN.fullmatch(arn)
        self.check(access_key_id, name[1] if name else arn)
        self.queue(access_key_id, payload.encode())
