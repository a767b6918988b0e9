"""The one HTTP door: /bed/… is the bed's own API, everything else is an AWS call."""

import io
import socket
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.core.request import Request
from werkzeug import Response

from bed_aws import models
from bed_aws.bed_api import BedApi
from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.signature import Signed, check
from bed_aws.state import State

# Python computes one answer at a time. Where hundreds of threads compute side by side, each takes longer than its caller
# waits, and no call of a storm is answered at all.
AT_ONCE = 2
# They wait for something by themselves, and may not keep others from their turn.
WAIT_LONG = {("sqs", "ReceiveMessage"), ("lambda", "Invoke")}


class App:
    def __init__(self, state: State) -> None:
        self._state = state
        self._turns = ThreadPoolExecutor(AT_ONCE)
        self._bed_api = BedApi(state)
        self._moto = state.moto.application()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        # Kept: the signature, the stand-ins and moto all read it.
        request.get_data(cache=True)
        response = self._bed_api.answer(request) if request.path.startswith("/bed/") else self._aws(request)
        return response(environ, start_response)

    def _aws(self, request: Request) -> Response:
        call = Call.of(request)
        if not call.service:
            return Response("Request is missing Authentication Token", 403)
        entry = self._state.journal.open(call)
        try:
            self._state.faults.strike(call)
            if (call.service, call.action) in WAIT_LONG:
                response = self._answer(call)
            else:
                response = self._turns.submit(self._in_turn, call).result()
        except AwsError as refused:
            response = models.answer(call, refused)
        except ConnectionError:
            raise
        except Exception as broken:
            # A gap in moto: the caller gets an error, the log the reason.
            traceback.print_exc()
            response = Response(f"moto: {broken!r}", 500)
        entry.answered(response)
        return response

    def _in_turn(self, call: Call) -> Response:
        if _is_gone(call.request):
            raise ConnectionError("nobody is left to answer")
        return self._answer(call)

    def _answer(self, call: Call) -> Response:
        request = call.request
        url = f"http://{request.host}{request.environ['RAW_URI']}"
        signed = Signed(request.method, url, request.headers, request.get_data())
        caller = check(signed, self._state.credentials, call.protocol)
        if problems := models.request_problems(call):
            code = "ValidationError" if call.protocol == "query" else "ValidationException"
            errors = "1 validation error" if len(problems) == 1 else f"{len(problems)} validation errors"
            raise AwsError(400, code, f"{errors} detected: {'; '.join(problems)}")
        self._state.iam.check(call, caller, self._state.autoscaling.tags_of)
        self._state.limits.check(call)
        answered = self._stand_in_answers(call)
        if answered is None:
            return self._moto_answers(call)
        return answered if isinstance(answered, Response) else models.answer(call, answered)

    def _stand_in_answers(self, call: Call) -> dict[str, Any] | Response | None:
        state = self._state
        match call.service:
            case "autoscaling":
                return state.autoscaling.answer(call)
            case "ec2":
                return state.autoscaling.replacing.spot_requests(call)
            case "cloudformation":
                return state.stacks.answer(call)
            case "eks":
                return state.eks.answer(call)
            case "events":
                return state.notices.answer(call) or state.bus.answer(call)
            case "lambda":
                return state.invocations.answer(call)
            case "sqs":
                return state.announcing.answer(call)
            case "scheduler":
                return state.scheduler.answer(call, self._moto_answers)
        return None

    def _moto_answers(self, call: Call) -> Response:
        body = self._state.instances.body(call)
        environ = {**call.request.environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return Response.from_app(self._moto, environ, buffered=True)


def _is_gone(request: Request) -> bool:
    """Whether the caller has given up: it has closed its end."""
    try:
        return not request.environ["werkzeug.socket"].recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
