"""Stand-in for Lambda's Invoke: who may ask for which function, what is too long, and what is queued for it; and for
GetAccountSettings, which moto lacks: an account with the usual limit.

The function itself is driven by the test (`tests/bed/src/lambda`), which takes what waits here. A function is its session:
credentials of the function's role under its name.
"""

import json
import uuid
from concurrent.futures import Future
from queue import Empty, Queue
from typing import Any

from werkzeug import Response

from bed_aws import shapes
from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.iam import Iam
from bed_aws.moto_side import Moto
from bed_aws.notices import Notices

LONGEST = 1024 * 1024
USUAL_LIMIT = 1000
INVOKED = "Invoke"
"""Where another delivery has the name of its rule."""


class Invocations:
    def __init__(self, moto: Moto, iam: Iam, notices: Notices) -> None:
        self._moto = moto
        self._iam = iam
        self._notices = notices
        # What somebody waits for, by the function's name, and by an id of its own.
        self._asked: dict[str, Queue[tuple[str, Any]]] = {}
        self._waiting: dict[str, Future[dict[str, Any]]] = {}

    def serve(self, function: str) -> None:
        """From now on somebody may ask for the function and wait: a test takes what is asked, and answers it."""
        self._asked.setdefault(function, Queue())

    def take(self, function: str, wait_s: float) -> dict[str, Any]:
        try:
            asked, event = self._asked[function].get(timeout=wait_s)
        except Empty:
            return {}
        return {"id": asked, "event": event}

    def say(self, id: str, failed: bool, result: Any = None) -> None:
        if id not in self._waiting:
            raise BedError(f"nobody waits for {id}", 404)
        self._waiting.pop(id).set_result({"result": result, "failed": failed})

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
        if how == "RequestResponse" and name in self._asked:
            return self._awaited(name, call.request.get_data())
        if not self._is_there(call.access_key_id, name):
            arn = f"arn:aws:lambda:{self._moto.region}:{self._moto.account}:function:{name}"
            raise AwsError(404, "ResourceNotFoundException", f"Function not found: {arn}")
        if how == "DryRun":
            return Response(status=204)
        if how != "Event":
            raise AwsError(501, "NotImplementedException", "this stand-in for Lambda takes asynchronous invocations only")
        self.queue(call.access_key_id, call.request.get_data())
        return Response(status=202)

    def _awaited(self, name: str, payload: bytes) -> Response:
        """The answer of a function that a test drives."""
        asked, waiting = str(uuid.uuid4()), Future[dict[str, Any]]()
        self._waiting[asked] = waiting
        self._asked[name].put((asked, json.loads(payload)))
        said = waiting.result()
        headers = {"X-Amz-Function-Error": "Unhandled"} if said["failed"] else {}
        return Response(json.dumps(said["result"]), headers=headers, mimetype="application/json")

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
        if not self._iam.may_schedule(access_key_id, arn):
            raise AwsError(403, "AccessDeniedException", f"Scheduler's role may not invoke {arn}")
        if not self._is_there(access_key_id, arn.rpartition(":")[2]):
            raise AwsError(404, "ResourceNotFoundException", f"Function not found: {arn}")
        self.queue(access_key_id, payload.encode())

    def _is_there(self, access_key_id: str, name: str) -> bool:
        """There is no function but the one that asks."""
        caller = self._moto.sts.get_assumed_role_from_access_key(access_key_id)
        return caller is not None and caller.session_name == name
