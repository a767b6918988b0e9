"""The bed's own API under /bed/…: what a test sets up, sends, breaks and counts. JSON in, JSON out, errors as 4xx.

A body's fields are the parameters of the method that answers: one too many or too few is an error that names it.
"""

import inspect
import json
import traceback
from collections.abc import Callable
from threading import Timer
from typing import Any

from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

from bed_aws.autoscaling import TERMINATING, Hook
from bed_aws.eks import Cluster, Override
from bed_aws.errors import BedError
from bed_aws.faults import Fault
from bed_aws.instances import described
from bed_aws.notices import Event, spot_interruption
from bed_aws.rooms import Rooms

Json = dict[str, Any]


class BedApi:
    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("POST", "/bed/credentials", self.post_credentials),
            ("POST", "/bed/clusters", self.post_cluster),
            ("POST", "/bed/overrides", self.post_override),
            ("POST", "/bed/groups", self.post_group),
            ("POST", "/bed/instances", self.post_instance),
            ("GET", "/bed/instances/<instance_id>", rooms.autoscaling.described),
            ("DELETE", "/bed/instances/<instance_id>", rooms.instances.terminate),
            ("POST", "/bed/notices", self.post_notice),
            ("POST", "/bed/deliveries", self.post_deliveries),
            ("GET", "/bed/schedules", rooms.scheduler.schedules),
            ("GET", "/bed/variables", self.get_variables),
            ("POST", "/bed/interrupt", self.post_interrupt),
            ("POST", "/bed/terminate", self.post_terminate),
            ("GET", "/bed/terminated", self.get_terminated),
            ("GET", "/bed/calls", rooms.journal.calls),
            ("POST", "/bed/faults", self.post_fault),
            ("DELETE", "/bed/faults", rooms.faults.clear),
            ("POST", "/bed/failures", rooms.failures.put),
            ("GET", "/bed/failures", rooms.failures.all),
            ("POST", "/bed/queues", rooms.queues.create),
            ("POST", "/bed/messages", rooms.queues.send),
        ]
        self._routes = Map([Rule(path, methods=[method], endpoint=answer) for method, path, answer in routes])

    def answer(self, request: Request) -> Response:
        try:
            answer, in_path = self._routes.bind_to_environ(request.environ).match()
            fields = {**request.args, **in_path, **_json_object(request.get_data())}
            return _json(_call(answer, fields))
        except BedError as error:
            return _json({"error": str(error)}, error.status)
        except HTTPException as error:
            return _json({"error": f"{request.method} {request.path}: {error.name}"}, error.code or 400)

    def post_credentials(self, role: str, session: str) -> Json:
        given = self._rooms.credentials.assume(role, session)
        return {
            "access_key_id": given.access_key_id,
            "secret_access_key": given.secret_access_key,
            "session_token": given.session_token,
            "role_arn": given.role_arn,
        }

    def post_cluster(self, name: str, endpoint: str, ca: str, status: str = "ACTIVE") -> None:
        self._rooms.eks.put(Cluster(name, endpoint, ca, status))

    def post_override(
        self, access_key_id: str, cluster: str, endpoint: str | None = None, ca: str | None = None
    ) -> None:
        self._rooms.eks.override(access_key_id, cluster, Override(endpoint, ca))

    def post_group(self, name: str, hooks: list[Json], tags: dict[str, str] | None = None) -> None:
        self._rooms.autoscaling.put_group(name, [_call(_hook, hook) for hook in hooks], tags or {})

    def post_instance(
        self,
        cluster: str | None = None,
        group: str | None = None,
        zone: str | None = None,
        spot: bool = False,
        tags: dict[str, str] | None = None,
        name_form: str = "ip",
    ) -> Json:
        all_tags = {}
        if cluster is not None:
            all_tags |= {f"kubernetes.io/cluster/{cluster}": "owned", "aws:eks:cluster-name": cluster}
        joined = self._rooms.autoscaling.group(group) if group is not None else None
        if joined is not None:
            all_tags |= joined.tags | {"aws:autoscaling:groupName": joined.name}
        instance = self._rooms.instances.launch(zone, spot, all_tags | (tags or {}), name_form)
        if joined is not None:
            self._rooms.autoscaling.join(instance.id, joined)
        return described(instance)

    def post_notice(self, event: Event) -> Json:
        return {"delivered": self._rooms.notices.put(event)}

    def post_deliveries(self, access_key_id: str, most: int | None = None, wait_s: float = 0) -> Json:
        return {"delivered": self._rooms.notices.take(access_key_id, most, wait_s)}

    def get_variables(self) -> dict[str, str]:
        return self._rooms.variables

    def post_interrupt(self, instance_id: str, in_s: float = 120) -> Json:
        if self._rooms.instances.get(instance_id).lifecycle != "spot":
            raise BedError(f"{instance_id} is no spot instance: AWS interrupts no other", 409)
        # Started first: the two minutes do not wait for the notice to arrive. No hook holds a reclaimed instance.
        reclaim = Timer(in_s, self._rooms.instances.terminate, [instance_id])
        reclaim.daemon = True
        reclaim.start()
        event = spot_interruption(self._rooms.moto.region, self._rooms.moto.account, instance_id)
        return {"delivered": self._rooms.notices.put(event)}

    def post_terminate(self, instance_id: str) -> Json:
        events = self._rooms.autoscaling.terminate(instance_id)
        return {"delivered": [delivery for event in events for delivery in self._rooms.notices.put(event)]}

    def get_terminated(self, since: str = "0", wait_s: str = "0") -> Json:
        gone = self._rooms.instances.terminated(int(since), float(wait_s))
        return {"next": int(since) + len(gone), "instances": [described(instance) for instance in gone]}

    def post_fault(self, **fields: Any) -> None:
        self._rooms.faults.add(_call(Fault, fields))


def _hook(
    name: str,
    transition: str = TERMINATING,
    heartbeat_timeout_s: float = 300,
    default_result: str = "ABANDON",
    metadata: str | None = None,
    global_timeout_s: float | None = None,
) -> Hook:
    # AWS's least is 30 s; tests have less patience. It is whole seconds on the wire.
    if heartbeat_timeout_s < 1:
        raise BedError("heartbeat_timeout_s is at least 1")
    return Hook(name, transition, heartbeat_timeout_s, default_result, metadata, global_timeout_s)


def _call(answer: Callable[..., Any], fields: Json) -> Any:
    try:
        bound = inspect.signature(answer).bind(**fields)
    except TypeError as error:
        raise BedError(str(error)) from None
    try:
        return answer(*bound.args, **bound.kwargs)
    except (TypeError, ValueError) as error:
        # A value of the wrong type, most likely; the whole story is in the log if it is not.
        traceback.print_exc()
        raise BedError(f"{type(error).__name__}: {error}") from error


def _json_object(body: bytes) -> Json:
    try:
        value = json.loads(body or b"{}")
    except ValueError as error:
        raise BedError(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BedError("the body is not a JSON object")
    return value


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, mimetype="application/json")
