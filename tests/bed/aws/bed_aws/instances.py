"""EC2 instances in moto: run for a test, stopped, started and ended as EC2 does it, with its events."""

from datetime import datetime
from threading import Condition
from typing import Any
from urllib.parse import urlencode

from moto.ec2.exceptions import InvalidInstanceIdError
from moto.ec2.models import EC2Backend
from moto.ec2.models.instances import Instance
from moto.ec2.utils import filter_dict_attribute_mapping, passes_filter_dict

from bed_aws.call import Call
from bed_aws.errors import BedError
from bed_aws.moto_side import Moto
from bed_aws.notices import Deliveries, Notices

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
# What a node notices of its instance; a reboot is no state of EC2's.
NOTICED = ("running", "stopped", "terminated", "rebooted")
# DescribeInstances' own, when the caller asks for no number.
ON_A_PAGE = 1000
# moto knows none of these filters; it looks them up here.
filter_dict_attribute_mapping["capacity-reservation-id"] = "capacity_reservation_id"
filter_dict_attribute_mapping["instance-lifecycle"] = "lifecycle"
filter_dict_attribute_mapping["event.code"] = "event_codes"
# No instance has a scheduled event until a test says so.
Instance.events = ()
# moto names an instance in its status by an attribute that it does not have.
Instance.instance_id = property(lambda instance: instance.id)
Instance.event_codes = property(lambda instance: [event["Code"] for event in instance.events])
_unfiltered = EC2Backend.describe_instance_status


def _instance_status(backend: EC2Backend, ids: list[str], stopped_too: bool, filters: list[dict[str, Any]]) -> list[Instance]:
    """moto passes over most filters of DescribeInstanceStatus, though it knows them elsewhere."""
    wanted = {one["name"]: one["values"] for one in filters}
    return [one for one in _unfiltered(backend, ids, stopped_too, None) if passes_filter_dict(one, wanted)]


EC2Backend.describe_instance_status = _instance_status


class Instances:
    def __init__(self, moto: Moto, notices: Notices) -> None:
        self._moto = moto
        self._notices = notices
        self._changes: list[dict[str, Any]] = []
        self._changed = Condition()
        self._page_sizes: dict[str, int] = {}

    def launch(
        self,
        zone: str | None,
        spot: bool,
        tags: dict[str, str],
        reservation_id: str | None = None,
        lifecycle: str | None = None,
    ) -> Instance:
        """`lifecycle`: of an instance in a reservation: `capacity-block`, `interruptible-capacity-reservation`."""
        with self._changed:
            subnets = self._moto.ec2.get_default_subnets()
            made = self._moto.ec2.run_instances(
                image_id="ami-12345678",
                count=1,
                user_data=None,
                security_group_names=[],
                instance_type="m7g.large",
                is_instance_type_default=False,
                region_name=self._moto.region,
                subnet_id=subnets[zone or min(subnets)].id,
                lifecycle="spot" if spot else lifecycle,
                tags={"instance": tags},
            )
            instance = made.instances[0]
            instance.capacity_reservation_id = reservation_id
            if spot:
                instance.spot_instance_request_id = instance.id.replace("i-", "sir-")
        return instance

    def get(self, instance_id: str) -> Instance:
        try:
            return self._moto.ec2.get_instance(instance_id)
        except InvalidInstanceIdError:
            raise BedError(f"no instance {instance_id}", 404) from None

    def go_through(self, instance_id: str, *states: str) -> Deliveries:
        """Takes an instance through states; answers what the rules made of EC2's events."""
        instance, deliveries = self.get(instance_id), []
        for state in states:
            with self._changed:
                if state == "terminated":
                    self._moto.ec2.terminate_instances([instance_id])
                instance._state.name, instance._state.code = state, CODES[state]
                self._note(instance, state)
            event = self._notices.about(instance_id, "EC2 Instance State-change Notification", state=state)
            deliveries += self._notices.put(event)
        return deliveries

    def terminate(self, instance_id: str) -> None:
        """Ends an instance, whatever state it is in; EC2's events are kept for whoever asks for this instance's."""
        with self._changed:
            ending = {"shutting-down": ("terminated",), "terminated": ()}
            way = ending.get(self.get(instance_id).state, ("shutting-down", "terminated"))
            self._notices.keep(instance_id, self.go_through(instance_id, *way))

    def reboot(self, instance_id: str) -> None:
        """EC2 sends no event of it."""
        with self._changed:
            self._note(self.get(instance_id), "rebooted")

    def announce(self, instance_id: str, events: list[dict[str, Any]]) -> None:
        """EC2 names these scheduled events of an instance, as it describes them, and sends no event of it."""
        instance = self.get(instance_id)
        instance.events = [{**event, "NotBefore": datetime.fromisoformat(event["NotBefore"])} for event in events]

    def changes(self, since: int, wait_s: float) -> dict[str, Any]:
        """What has changed after the first `since`, waited for when there is nothing yet."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._changes) > since, wait_s)
            return {"next": len(self._changes), "changes": self._changes[since:]}

    def limit_pages(self, access_key_id: str, size: int) -> None:
        """AWS may give less than was asked for, and a test may want pages to be turned."""
        self._page_sizes[access_key_id] = size

    def body(self, call: Call) -> bytes:
        """The body of a call, asking for no more than this caller's pages hold. moto's own pages hold 100."""
        # A call that names instances has a single page, and EC2 refuses it a size.
        if (call.service, call.action) != ("ec2", "DescribeInstances") or "InstanceIds" in call.asked:
            return call.request.get_data()
        asked = call.asked.get("MaxResults", ON_A_PAGE)
        size = min(asked, self._page_sizes.get(call.access_key_id, asked))
        return urlencode({**call.request.form, "MaxResults": size}).encode()

    def _note(self, instance: Instance, what: str) -> None:
        if what in NOTICED:
            self._changes.append({"what": what, **described(instance)})
            self._changed.notify_all()


def described(instance: Instance) -> dict[str, Any]:
    return {
        "instance_id": instance.id,
        "private_dns_name": instance.private_dns_name,
        "zone": instance.availability_zone,
        "provider_id": f"aws:///{instance.availability_zone}/{instance.id}",
        "private_ip": instance.private_ip,
    }
