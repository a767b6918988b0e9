"""The one HTTP door: /bed/… is the bed's own API, everything else is an AWS call."""

import io
import socket
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from wsgiref.types import StartResponse, WSGIEnvironment

from werkzeug import Request, Response

from bed_aws.bed_api import BedApi
from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.faults import Dropped
from bed_aws.models import answer_problems, request_problems
from bed_aws.state import State
from bed_aws.signature import Signed, check


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
        entry = self._state.journal.open(call)
        try:
            self._state.faults.strike(call)
            if (call.service, call.action) in WAIT_LONG:
                response = self._answer(call)
            else:
                response = self._turns.submit(self._in_turn, call).result()
        except AwsError as refused:
            response = refused.response(call.protocol)
        except Dropped:
            raise
        except Exception as broken:
            # A gap in moto: the caller gets an AWS error, the log the reason.
            traceback.print_exc()
            response = AwsError(500, "InternalFailure", f"moto: {broken!r}").response(call.protocol)
        entry.answered(response)
        return response

    def _in_turn(self, call: Call) -> Response:
        if _is_gone(call.request):
            raise Dropped
        return self._answer(call)

    def _answer(self, call: Call) -> Response:
        request = call.request
        url = f"http://{request.host}{request.environ['RAW_URI']}"
        signed = Signed(request.method, url, request.headers, request.get_data())
        caller = check(signed, self._state.credentials, call.protocol)
        self._state.iam.check(call, caller, self._state.autoscaling.tags_of)
        if problems := request_problems(call):
            raise AwsError(400, "ValidationException", f"{len(problems)} validation errors detected: {'; '.join(problems)}")
        self._state.limits.check(call)
        response = self._stand_in_answers(call)
        if response is None:
            response = self._moto_answers(call)
        elif problems := answer_problems(call, response):
            raise TypeError(f"the stand-in for {call.service}:{call.action}: {'; '.join(problems)}")
        if call.action == "TerminateInstances":
            self._state.instances.collect()
        return response

    def _stand_in_answers(self, call: Call) -> Response | None:
        match call.service:
            case "autoscaling":
                return self._state.autoscaling.answer(call)
            case "ec2":
                return self._state.autoscaling.replacing.spot_requests(call)
            case "cloudformation":
                return self._state.stacks.answer(call)
            case "eks":
                return self._state.eks.answer(call)
            case "events":
                return self._state.notices.answer(call) or self._state.bus.answer(call)
            case "lambda":
                return self._state.invocations.answer(call) or self._state.queues.answer(call) or self._state.bus.answer(call)
            case "sqs":
                return self._state.announcing.answer(call)
            case "scheduler":
                return self._state.scheduler.answer(call, self._moto_answers)
        return None

    def _moto_answers(self, call: Call) -> Response:
        body = self._state.pages.shortened(call) if call.service == "ec2" else call.request.get_data()
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
