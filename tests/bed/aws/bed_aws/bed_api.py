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

from bed_aws import deliveries, hooks, stack
from bed_aws.eks import Cluster, Override
from bed_aws.errors import BedError
from bed_aws.faults import Fault
from bed_aws.hooks import Hook
from bed_aws.instances import CapacityReservation, described
from bed_aws.notices import Event, spot_interruption
from bed_aws.state import State

Json = dict[str, Any]

LEAVING = {
    "terminate": hooks.TERMINATION,
    "return to warm pool": hooks.RETURN_TO_WARM_POOL,
    "return to running warm pool": hooks.RETURN_TO_RUNNING_WARM_POOL,
    "replace root volume": hooks.ROOT_VOLUME_REPLACEMENT,
}


class BedApi:
    def __init__(self, state: State) -> None:
        self._state = state
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("POST", "/bed/credentials", self.post_credentials),
            ("GET", "/bed/functions", state.functions.limits),
            ("POST", "/bed/clusters", self.post_cluster),
            ("GET", "/bed/clusters/<cluster>/entries", state.eks.entries),
            ("DELETE", "/bed/clusters/<name>", state.eks.remove),
            ("POST", "/bed/stacks", state.stacks.put),
            ("DELETE", "/bed/stacks/<name>", state.stacks.delete),
            ("GET", "/bed/left", self.get_left),
            ("POST", "/bed/served", state.invocations.serve),
            ("POST", "/bed/asked", state.invocations.take),
            ("POST", "/bed/said", state.invocations.say),
            ("POST", "/bed/overrides", self.post_override),
            ("POST", "/bed/groups", self.post_group),
            ("GET", "/bed/groups/<name>", state.autoscaling.described_group),
            ("POST", "/bed/instances", self.post_instance),
            ("GET", "/bed/instances/<instance_id>", state.autoscaling.described),
            ("DELETE", "/bed/instances/<instance_id>", state.instances.terminate),
            ("POST", "/bed/targets", state.targets.register),
            ("DELETE", "/bed/targets/<instance_id>", state.targets.deregister),
            ("POST", "/bed/notices", self.post_notice),
            ("POST", "/bed/rules", state.bus.put_rule),
            ("DELETE", "/bed/rules", state.bus.delete_rule),
            ("POST", "/bed/rule-states", state.bus.switch_rule),
            ("POST", "/bed/deliveries", self.post_deliveries),
            ("GET", "/bed/events", state.notices.events),
            ("GET", "/bed/schedules", state.scheduler.schedules),
            ("GET", "/bed/variables", self.get_variables),
            ("POST", "/bed/interrupt", self.post_interrupt),
            ("POST", "/bed/moves", self.post_move),
            ("POST", "/bed/states", self.post_state),
            ("POST", "/bed/reboot", state.instances.reboot),
            ("POST", "/bed/scheduled-events", state.instances.announce),
            ("GET", "/bed/changes", self.get_changes),
            ("POST", "/bed/pages", state.pages.put),
            ("GET", "/bed/calls", state.journal.calls),
            ("POST", "/bed/faults", self.post_fault),
            ("DELETE", "/bed/faults", state.faults.clear),
            ("POST", "/bed/limits", state.limits.put),
            ("POST", "/bed/failures", state.failures.put),
            ("GET", "/bed/failures", state.failures.all),
            ("GET", "/bed/dead-letters", state.deliveries.dead_letters),
            ("POST", "/bed/queues", state.queues.create),
            ("POST", "/bed/mappings", state.queues.create_mapping),
            ("POST", "/bed/messages", state.queues.send),
            ("GET", "/bed/messages", state.queues.bodies),
            ("POST", "/bed/messages/receive", state.queues.receive),
            ("POST", "/bed/messages/settle", state.queues.settle),
            ("POST", "/bed/announcers", state.announcing.deploy),
            ("POST", "/bed/topics", state.sinks.topic),
            ("GET", "/bed/topics", state.sinks.published),
            ("POST", "/bed/parameters", state.sinks.parameter),
            ("POST", "/bed/secrets", state.sinks.secret),
            ("POST", "/bed/secrets/change", state.sinks.change_secret),
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

    def post_credentials(self, role: str, session: str, variables: dict[str, str] | None = None) -> Json:
        """Of a function that has these variables."""
        given = self._state.credentials.assume(role, session)
        self._state.iam.deploy(given.access_key_id, role, session, variables or {})
        return {
            "access_key_id": given.access_key_id,
            "secret_access_key": given.secret_access_key,
            "session_token": given.session_token,
            "role_arn": given.role_arn,
        }

    def post_cluster(self, **fields: Any) -> None:
        self._state.eks.put(_call(Cluster, fields))

    def post_override(
        self, access_key_id: str, cluster: str, endpoint: str | None = None, ca: str | None = None
    ) -> None:
        self._state.eks.override(access_key_id, cluster, Override(endpoint, ca))

    def post_group(
        self, name: str, hooks: list[Json], tags: dict[str, str] | None = None, keeps_abandoned: bool = False
    ) -> None:
        self._state.autoscaling.put_group(name, [_call(_hook, hook) for hook in hooks], tags or {}, keeps_abandoned)

    def post_instance(
        self,
        cluster: str | None = None,
        group: str | None = None,
        warm_pool: bool = False,
        zone: str | None = None,
        spot: bool = False,
        capacity_reservation: Json | None = None,
        tags: dict[str, str] | None = None,
        name_form: str = "ip",
    ) -> Json:
        all_tags = {}
        if cluster is not None:
            all_tags |= {f"kubernetes.io/cluster/{cluster}": "owned", "aws:eks:cluster-name": cluster}
        joined = self._state.autoscaling.group(group) if group is not None else None
        if joined is not None:
            all_tags |= {"aws:autoscaling:groupName": joined.name}
        reservation = _call(CapacityReservation, capacity_reservation) if capacity_reservation else None
        instance = self._state.instances.launch(zone, spot, reservation, all_tags | (tags or {}), name_form)
        delivered = self._state.autoscaling.launch(instance.id, joined, warm_pool) if joined is not None else []
        return {**described(instance), "delivered": delivered}

    def post_notice(self, event: Event, refusals: list[Json] | None = None) -> Json:
        """`refusals`: what Lambda answers EventBridge, until it takes the event."""
        told = [_call(deliveries.refusal, one) for one in refusals or []]
        return {"delivered": self._state.deliveries.deliver(self._state.notices.put(event), told)}

    def post_deliveries(self, sender: str, most: int | None = None, wait_s: float = 0) -> Json:
        """Of what a caller has put on the bus, by its key; or of what AWS has sent about an instance, by its id."""
        return {"delivered": self._state.notices.take(sender, most, wait_s)}

    def get_left(self) -> dict[str, list[str]]:
        return stack.left(self._state.moto)

    def get_variables(self) -> dict[str, str]:
        return self._state.stacks.variables

    def post_interrupt(self, instance_id: str, in_s: float = 120) -> Json:
        if self._state.instances.get(instance_id).lifecycle != "spot":
            raise BedError(f"{instance_id} is no spot instance: AWS interrupts no other", 409)
        # Started first: the two minutes do not wait for the notice to arrive. No hook holds a reclaimed instance.
        reclaim = Timer(in_s, self._state.instances.terminate, [instance_id])
        reclaim.daemon = True
        reclaim.start()
        event = spot_interruption(self._state.moto.region, self._state.moto.account, instance_id)
        return {"delivered": self._state.notices.put(event)}

    def post_move(self, instance_id: str, move: str) -> Json:
        """Auto Scaling moves an instance, past the hooks of its group."""
        if move == "launch from warm pool":
            return {"delivered": self._state.autoscaling.launch_from_warm_pool(instance_id)}
        if move not in LEAVING:
            raise BedError(f"no move {move}; there are {', '.join(LEAVING)} and launch from warm pool")
        return {"delivered": self._state.autoscaling.leave(instance_id, LEAVING[move])}

    def post_state(self, instance_id: str, states: list[str]) -> Json:
        """EC2 takes an instance from state to state."""
        return {"delivered": self._state.instances.go_through(instance_id, *states)}

    def get_changes(self, since: str = "0", wait_s: str = "0") -> Json:
        changes = self._state.instances.changes(int(since), float(wait_s))
        told = [{"what": change.what, **described(change.instance)} for change in changes]
        return {"next": int(since) + len(changes), "changes": told}

    def post_fault(self, **fields: Any) -> None:
        self._state.faults.add(_call(Fault, fields))


def _hook(
    name: str,
    transition: str = hooks.TERMINATING,
    heartbeat_timeout_s: float = 300,
    default_result: str = "ABANDON",
    metadata: str | None = None,
    global_timeout_s: float | None = None,
    notifies: str | None = None,
) -> Hook:
    # AWS's least is 30 s; tests have less patience. It is whole seconds on the wire.
    if heartbeat_timeout_s < 1:
        raise BedError("heartbeat_timeout_s is at least 1")
    return Hook(name, transition, heartbeat_timeout_s, default_result, metadata, global_timeout_s, notifies)


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
