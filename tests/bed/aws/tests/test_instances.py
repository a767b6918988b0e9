"""Instances are what was asked for, go through EC2's states with EC2's events, and are found by what they are."""

from tests.side import OnTheSide, Refused, bed, move, until_gone


class Launched(OnTheSide):
    def test_an_instance_is_what_was_asked_for(self) -> None:
        fields = {"cluster": "shop", "zone": "us-east-1c", "spot": True, "tags": {"a": "b"}, "name_form": "resource"}
        launched = bed("POST", "instances", **fields)
        reservations = self.client("ec2").describe_instances(InstanceIds=[launched["instance_id"]])["Reservations"]
        [ec2] = reservations[0]["Instances"]
        self.assertEqual(ec2["PrivateDnsName"], f"{ec2['InstanceId']}.ec2.internal")
        self.assertEqual(launched["private_dns_name"], ec2["PrivateDnsName"])
        self.assertEqual((ec2["InstanceLifecycle"], ec2["Placement"]["AvailabilityZone"]), ("spot", "us-east-1c"))
        self.assertEqual(launched["provider_id"], f"aws:///us-east-1c/{ec2['InstanceId']}")
        tags = {tag["Key"]: tag["Value"] for tag in ec2["Tags"]}
        self.assertEqual(tags, {"kubernetes.io/cluster/shop": "owned", "aws:eks:cluster-name": "shop", "a": "b"})

    def test_one_that_was_ended_through_ec2_is_seen_too(self) -> None:
        instance = bed("POST", "instances", spot=False)["instance_id"]
        self.client("ec2").terminate_instances(InstanceIds=[instance])
        until_gone(instance)

    def test_scheduled_events_are_those_that_were_announced(self) -> None:
        affected, other = self.instance(), self.instance()
        event = {"InstanceEventId": "instance-event-1", "Code": "system-reboot", "Description": "[Canceled] d", "NotBefore": "2027-01-02T03:04:05Z"}
        bed("POST", "scheduled-events", instance_id=affected, events=[event])
        codes = [{"Name": "event.code", "Values": ["instance-stop", "system-reboot"]}]
        statuses = self.client("ec2").describe_instance_status(Filters=codes)["InstanceStatuses"]
        found = {status["InstanceId"]: status["Events"] for status in statuses}
        self.assertNotIn(other, found)
        [named] = found[affected]
        self.assertEqual((named["Code"], named["Description"]), ("system-reboot", "[Canceled] d"))
        self.assertEqual(named["NotBefore"].isoformat(), "2027-01-02T03:04:05+00:00")
        of_another = [*codes, {"Name": "instance-id", "Values": [other]}]
        self.assertEqual(self.client("ec2").describe_instance_status(Filters=of_another)["InstanceStatuses"], [])

    def test_only_spot_instances_are_interrupted(self) -> None:
        with self.assertRaisesRegex(Refused, "409"):
            bed("POST", "interrupt", instance_id=self.instance())

    def test_those_of_a_capacity_reservation_are_found_page_by_page(self) -> None:
        block = {"id": "cr-1", "lifecycle": "capacity-block"}
        reserved = [bed("POST", "instances", capacity_reservation=block)["instance_id"] for _ in range(3)]
        bed("POST", "instances", capacity_reservation={"id": "cr-2"})
        bed("POST", "pages", access_key_id=self.key, size=2)
        paginator = self.client("ec2").get_paginator("describe_instances")
        filters = [{"Name": "capacity-reservation-id", "Values": ["cr-1"]}]
        pages = [
            [instance for reservation in page["Reservations"] for instance in reservation["Instances"]]
            for page in paginator.paginate(Filters=filters)
        ]
        self.assertEqual([len(page) for page in pages], [2, 1])
        found = [instance for page in pages for instance in page]
        self.assertCountEqual([instance["InstanceId"] for instance in found], reserved)
        kinds = {(instance["CapacityReservationId"], instance["InstanceLifecycle"]) for instance in found}
        self.assertEqual(kinds, {("cr-1", "capacity-block")})

    def test_they_are_found_by_their_lifecycle(self) -> None:
        own = {"Name": "tag:test", "Values": [self.id()]}
        spot, _ = (bed("POST", "instances", spot=spot, tags={"test": self.id()})["instance_id"] for spot in (True, False))
        filters = [own, {"Name": "instance-lifecycle", "Values": ["spot"]}]
        [reservation] = self.client("ec2").describe_instances(Filters=filters)["Reservations"]
        self.assertEqual([instance["InstanceId"] for instance in reservation["Instances"]], [spot])

    def test_a_page_size_leaves_calls_that_name_instances_alone(self) -> None:
        instances = [bed("POST", "instances", spot=False)["instance_id"] for _ in range(2)]
        bed("POST", "pages", access_key_id=self.key, size=1)
        self.assertEqual(len(self.client("ec2").describe_instances(InstanceIds=instances)["Reservations"]), 2)


class States(OnTheSide):
    def go(self, instance_id: str, *states: str) -> list[str]:
        delivered = bed("POST", "states", instance_id=instance_id, states=states)["delivered"]
        self.assertEqual({one["rule"] for one in delivered}, {"DrainStateChange"})
        return [one["event"]["detail"]["state"] for one in delivered]

    def ec2_state(self, instance_id: str) -> str:
        [reservation] = self.client("ec2").describe_instances(InstanceIds=[instance_id])["Reservations"]
        return reservation["Instances"][0]["State"]["Name"]

    def test_each_state_is_an_event_and_what_ec2_says(self) -> None:
        instance = self.instance()
        for state in ("stopping", "stopped", "pending", "running", "shutting-down", "terminated"):
            self.assertEqual(self.go(instance, state), [state])
            self.assertEqual(self.ec2_state(instance), state)

    def test_an_event_is_in_ec2s_form(self) -> None:
        instance = self.instance()
        [delivery] = bed("POST", "states", instance_id=instance, states=["stopping"])["delivered"]
        event = delivery["event"]
        self.assertEqual((event["source"], event["account"]), ("aws.ec2", "123456789012"))
        self.assertEqual(event["resources"], [f"arn:aws:ec2:us-east-1:123456789012:instance/{instance}"])
        self.assertEqual(event["detail"], {"instance-id": instance, "state": "stopping"})

    def test_no_state_is_left_out(self) -> None:
        instance = self.instance()
        with self.assertRaisesRegex(Refused, f"{instance} is running: from there it does not become stopped"):
            self.go(instance, "stopped")

    def test_one_that_auto_scaling_ends_is_told_of_too(self) -> None:
        instance = self.instance()
        move(instance)
        self.assertEqual([detail["state"] for _, detail in self.about(instance)], ["shutting-down", "terminated"])

    def test_one_that_is_ended_through_ec2_is_told_of_too(self) -> None:
        instance = self.instance()
        self.client("ec2").terminate_instances(InstanceIds=[instance])
        self.assertEqual([detail["state"] for _, detail in self.about(instance)], ["shutting-down", "terminated"])

    def test_a_node_hears_of_stops_starts_and_reboots(self) -> None:
        since = bed("GET", "changes")["next"]
        instance = self.instance()
        bed("POST", "reboot", instance_id=instance)
        self.go(instance, "stopping", "stopped", "pending", "running")
        changes = bed("GET", f"changes?since={since}")["changes"]
        self.assertEqual([change["what"] for change in changes], ["rebooted", "stopped", "running"])
        self.assertEqual({change["instance_id"] for change in changes}, {instance})

    def test_only_what_runs_is_rebooted_and_ec2_says_nothing(self) -> None:
        instance = self.instance()
        bed("POST", "reboot", instance_id=instance)
        self.assertEqual(self.about(instance), [])
        self.go(instance, "stopping")
        with self.assertRaisesRegex(Refused, "409"):
            bed("POST", "reboot", instance_id=instance)
