"""The bed's own API: POST /bed/<call>, which a test sets up, sends, breaks and counts with. JSON in, JSON out, errors as 4xx.

A body's fields are the parameters of the method that answers: one too many or too few is an error that names it. A field that is
null is not given.
"""

import json
import traceback
from collections.abc import Callable
from threading import Timer
from typing import Any

from werkzeug import Request, Response

from bed_aws import queues, stack
from bed_aws.eks import Cluster
from bed_aws.errors import BedError
from bed_aws.faults import Fault
from bed_aws.instances import described
from bed_aws.state import State

Json = dict[str, Any]


class BedApi:
    def __init__(self, state: State) -> None:
        self._state = state
        self._calls: dict[str, Callable[..., Any]] = {
            "credentials_of_function": self.credentials_of_function,
            "limits_of_function": lambda role: stack.limits(state.template, role),
            "variables": lambda: state.stacks.variables,
            "divide_quotas": state.limits.divide,
            "put_served": state.invocations.serve,
            "asked": state.invocations.take,
            "said": state.invocations.say,
            "put_cluster": lambda **fields: state.eks.put(Cluster(**fields)),
            "hide_cluster": state.eks.remove,
            "override_endpoint": state.eks.override,
            "access_entries": state.eks.entries,
            "put_group": state.autoscaling.put_group,
            "put_group_with_tags": state.autoscaling.put_group,
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
            "changes": state.instances.changes,
            "interrupt_in": self.interrupt_in,
            "move_past_hooks": state.autoscaling.leave,
            "send_notice": state.notices.put,
            "take_deliveries": state.notices.take,
            "await_deliveries": state.notices.take,
            "events": state.notices.events,
            "schedules": state.scheduler.schedules,
            "put_rule": state.bus.put_rule,
            "delete_rule": state.bus.delete_rule,
            "switch_rule": state.bus.switch_rule,
            "deploy_stack": state.stacks.put,
            "delete_stack": state.stacks.delete,
            "left": lambda: stack.left(state.moto),
            "limit_pages": state.instances.limit_pages,
            "calls": state.journal.calls,
            "add_fault": lambda **fields: state.faults.add(Fault(**fields)),
            "clear_faults": state.faults.clear,
            "put_failure": lambda body: state.queues.send(queues.FAILURES, [body]),
            "failures": lambda: state.queues.bodies(queues.FAILURES),
            "deploy_announcer": state.announcing.deploy,
            "receive": state.queues.receive,
            "settle": state.queues.settle,
            "messages": state.queues.bodies,
            "put_queue": state.queues.create,
            "send_messages": state.queues.send,
            "create_topic": state.queues.topic,
            "published": state.queues.published,
            "put_parameter": state.queues.parameter,
            "put_secret": state.queues.secret,
            "change_secret": state.queues.change_secret,
        }

    def answer(self, request: Request) -> Response:
        name = request.path.removeprefix("/bed/")
        try:
            if name not in self._calls:
                raise BedError(f"no call {name}", 404)
            fields = json.loads(request.get_data() or b"{}")
            return _json(self._calls[name](**{name: value for name, value in fields.items() if value is not None}))
        except BedError as error:
            return _json({"error": str(error)}, error.status)
        except (TypeError, ValueError) as error:
            # Most likely a field too many or too few, or of the wrong type; the log has the whole story.
            traceback.print_exc()
            return _json({"error": f"{type(error).__name__}: {error}"}, 400)

    def credentials_of_function(self, role: str, session: str, variables: dict[str, str]) -> Json:
        given = self._state.credentials.assume(role, session)
        self._state.iam.deploy(given.access_key_id, role, session, variables)
        return {key: getattr(given, key) for key in ("access_key_id", "secret_access_key", "session_token", "role_arn")}

    def launch(
        self,
        cluster: str | None = None,
        group: str | None = None,
        zone: str | None = None,
        spot: bool = False,
        capacity_reservation: Json | None = None,
        tags: dict[str, str] | None = None,
    ) -> Json:
        autoscaling, reservation = self._state.autoscaling, capacity_reservation or {}
        all_tags = {f"kubernetes.io/cluster/{cluster}": "owned", "aws:eks:cluster-name": cluster} if cluster else {}
        joined = autoscaling.group(group) if group else None
        if joined:
            all_tags["aws:autoscaling:groupName"] = joined.name
        all_tags |= tags or {}
        reserved = (reservation.get("id"), reservation.get("lifecycle"))
        instance = self._state.instances.launch(zone, spot, all_tags, *reserved)
        return {**described(instance), "delivered": autoscaling.launch(instance.id, joined) if joined else []}

    def interrupt_in(self, instance_id: str, in_s: float) -> list[Json]:
        self._state.autoscaling.replacing.mark(instance_id, "marked-for-termination")
        # Started first: the two minutes do not wait for the notice to arrive. No hook holds a reclaimed instance.
        reclaim = Timer(in_s, self._state.instances.terminate, [instance_id])
        reclaim.daemon = True
        reclaim.start()
        notices, warning = self._state.notices, "EC2 Spot Instance Interruption Warning"
        return notices.put(notices.about(instance_id, warning, **{"instance-action": "terminate"}))


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, mimetype="application/json")
