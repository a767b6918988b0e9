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

    def answer(self, call: Call) -> dict[str, Any] | Response | None:
        if call.action == "GetAccountSettings":
            names = ("ConcurrentExecutions", "UnreservedConcurrentExecutions")
            return {"AccountLimit": dict.fromkeys(names, USUAL_LIMIT)}
        if call.action != "Invoke":
            return None
        name, payload = call.asked["FunctionName"], call.request.get_data()
        how = call.asked.get("InvocationType", "RequestResponse")
        if how == "RequestResponse" and name in self._asked:
            return self._awaited(name, payload)
        self._check_that_it_is_there(call.access_key_id, self._moto.function(name))
        if how == "DryRun":
            return Response(status=204)
        if how != "Event":
            raise AwsError(501, "NotImplementedException", "this stand-in for Lambda takes asynchronous invocations only")
        self.queue(call.access_key_id, payload)
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
        self._check_that_it_is_there(access_key_id, arn)
        self.queue(access_key_id, payload.encode())

    def _check_that_it_is_there(self, access_key_id: str, arn: str) -> None:
        """There is no function but the one that asks."""
        if arn != self._moto.function(self._moto.session(access_key_id)):
            raise AwsError(404, "ResourceNotFoundException", f"Function not found: {arn}")
