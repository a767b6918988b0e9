"""The bed's own API: POST /bed/<call>, which a test sets up, sends, breaks and counts with. JSON in, JSON out, errors as 4xx.

A body's fields are the parameters of the method that answers: one too many or too few is an error that names it. A field that is
null is not given.
"""

import inspect
import json
import traceback
from collections.abc import Callable
from threading import Timer
from typing import Any

from werkzeug import Request, Response

from bed_aws import hooks, stack
from bed_aws.eks import Cluster, Override
from bed_aws.errors import BedError
from bed_aws.faults import Fault
from bed_aws.hooks import Hook
from bed_aws.instances import CapacityReservation, described
from bed_aws.notices import spot_interruption
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
        self._calls: dict[str, Callable[..., Any]] = {
            "credentials_of_function": self.credentials_of_function,
            "limits_of_function": state.functions.limits,
            "variables": lambda: state.stacks.variables,
            "put_served": state.invocations.serve,
            "asked": state.invocations.take,
            "said": state.invocations.say,
            "put_cluster": lambda **fields: state.eks.put(_call(Cluster, fields)),
            "hide_cluster": state.eks.remove,
            "override_endpoint": self.override_endpoint,
            "access_entries": state.eks.entries,
            "put_group": self.put_group,
            "put_group_that_keeps": lambda **fields: self.put_group(**fields, keeps_abandoned=True),
            "put_group_with_tags": self.put_group,
            "group": state.autoscaling.described_group,
            "put_group_state": state.autoscaling.replacing.put,
            "mark_spot_request": state.autoscaling.replacing.mark,
            "launched": state.autoscaling.replacing.launched,
            "launch": self.launch,
            "instance": state.autoscaling.described,
            "terminate_instance": state.instances.terminate,
            "reboot": state.instances.reboot,
            "change_state": lambda instance_id, states: state.instances.go_through(instance_id, *states),
            "announce": state.instances.announce,
            "changes": self.changes,
            "register_target": state.targets.register,
            "deregister_target": state.targets.deregister,
            "interrupt_in": self.interrupt_in,
            "move_past_hooks": self.move_past_hooks,
            "send_notice": state.notices.put,
            "take_deliveries": lambda sender: state.notices.take(sender, None, 0),
            "await_deliveries": state.notices.take,
            "events": state.notices.events,
            "schedules": state.scheduler.schedules,
            "put_rule": state.bus.put_rule,
            "delete_rule": state.bus.delete_rule,
            "switch_rule": state.bus.switch_rule,
            "deploy_stack": state.stacks.put,
            "delete_stack": state.stacks.delete,
            "left": lambda: stack.left(state.moto),
            "limit_pages": state.pages.put,
            "calls": state.journal.calls,
            "add_fault": lambda **fields: state.faults.add(_call(Fault, fields)),
            "clear_faults": state.faults.clear,
            "put_limit": state.limits.put,
            "put_failure": state.failures.put,
            "failures": state.failures.all,
            "deploy_announcer": state.announcing.deploy,
            "create_mapping": state.queues.create_mapping,
            "receive": state.queues.receive,
            "settle": state.queues.settle,
            "messages": state.queues.bodies,
            "put_queue": state.queues.create,
            "send_messages": state.queues.send,
            "create_topic": state.sinks.topic,
            "published": state.sinks.published,
            "put_parameter": state.sinks.parameter,
            "put_secret": state.sinks.secret,
            "change_secret": state.sinks.change_secret,
        }

    def answer(self, request: Request) -> Response:
        name = request.path.removeprefix("/bed/")
        try:
            if name not in self._calls:
                raise BedError(f"no call {name}", 404)
            return _json(_call(self._calls[name], _json_object(request.get_data())))
        except BedError as error:
            return _json({"error": str(error)}, error.status)

    def credentials_of_function(self, role: str, session: str, variables: dict[str, str]) -> Json:
        given = self._state.credentials.assume(role, session)
        self._state.iam.deploy(given.access_key_id, role, session, variables)
        return {
            "access_key_id": given.access_key_id,
            "secret_access_key": given.secret_access_key,
            "session_token": given.session_token,
            "role_arn": given.role_arn,
        }

    def override_endpoint(
        self, access_key_id: str, cluster: str, endpoint: str | None = None, ca: str | None = None
    ) -> None:
        self._state.eks.override(access_key_id, cluster, Override(endpoint, ca))

    def put_group(
        self, name: str, hooks: list[Json], tags: dict[str, str] | None = None, keeps_abandoned: bool = False
    ) -> None:
        self._state.autoscaling.put_group(name, [_call(_hook, hook) for hook in hooks], tags or {}, keeps_abandoned)

    def launch(
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

    def interrupt_in(self, instance_id: str, in_s: float) -> list[Json]:
        if self._state.instances.get(instance_id).lifecycle != "spot":
            raise BedError(f"{instance_id} is no spot instance: AWS interrupts no other", 409)
        # Started first: the two minutes do not wait for the notice to arrive. No hook holds a reclaimed instance.
        self._state.autoscaling.replacing.mark(instance_id, "marked-for-termination")
        reclaim = Timer(in_s, self._state.instances.terminate, [instance_id])
        reclaim.daemon = True
        reclaim.start()
        event = spot_interruption(self._state.moto.region, self._state.moto.account, instance_id)
        return self._state.notices.put(event)

    def move_past_hooks(self, instance_id: str, how: str) -> list[Json]:
        """Auto Scaling moves an instance, past the hooks of its group."""
        if how == "launch from warm pool":
            return self._state.autoscaling.launch_from_warm_pool(instance_id)
        return self._state.autoscaling.leave(instance_id, LEAVING[how])

    def changes(self, since: int, wait_s: float) -> Json:
        changes = self._state.instances.changes(since, wait_s)
        told = [{"what": change.what, **described(change.instance)} for change in changes]
        return {"next": since + len(changes), "changes": told}


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
        bound = inspect.signature(answer).bind(**{name: value for name, value in fields.items() if value is not None})
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
