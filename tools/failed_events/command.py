"""The command `spillway replay`: shows the failure queue, and sends chosen events to the function again."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime, timezone
from typing import Any

from cli import FINDING, FINE, Failed, Found, counted, stack
from cli import options as common
from cli.aws import Aws, AwsError
from cli.table import aligned

from .event import Event, age, read

# Time in which other readers of the queue do not see the messages: as long as a person needs to answer.
HIDDEN_S = 120
# Largest batch of SQS; a longer queue is read until a batch is empty.
BATCH, LONGEST_QUEUE = 10, 10_000
ACCEPTED = 202


def parser() -> argparse.ArgumentParser:
    made = common.parser(
        "replay",
        "Shows the events of the failure queue and what would be done with them. With IDs or --all: sends them to the function again, and "
        "deletes the message of each event that Lambda has accepted. A notice of an instance that has gone is refused, unless forced. While it "
        f"works, other readers do not see the messages for {HIDDEN_S} s. Rights: docs/permissions.md.",
        "spillway replay 1b2c3d4e",
    )
    made.add_argument("ids", nargs="*", metavar="ID", help="an event of the first column")
    made.add_argument("--all", action="store_true", help="all events that are not too late")
    made.add_argument("--force", action="store_true", help="also notices past their deadline")
    made.add_argument("--plan", action="store_true", help="only show: nothing is sent or deleted")
    made.add_argument("--yes", action="store_true", help="do not ask before sending: for a pipeline")
    return made


def run(options: argparse.Namespace) -> int:
    if options.all and options.ids:
        raise Failed("give either IDs or --all")
    deployed = stack.read(Aws(options.region), options.stack)
    aws, queue, now = Aws(deployed.region), deployed.output("FailureQueueUrl"), datetime.now(timezone.utc)
    events = received(aws, queue)
    try:
        chosen, refused = _chosen(events, options, now)
        if options.output == "json":
            print(json.dumps([_document(one, now) for one in events], indent=2))
        elif events:
            print("\n".join(aligned([HEAD, *(_row(one, now, options.force) for one in events)])))
        else:
            print("The failure queue is empty.")
        for one in refused:
            force = "" if one.payload is None else " (--force sends it)"
            print(f"spillway replay: {one.id} is not sent: {one.why_not(now)}{force}", file=sys.stderr)
        if options.plan or not chosen or not common.agreed(f"Send {counted(len(chosen), 'event')} to {deployed.function} again?", options.yes):
            return FINDING if events else FINE
        failed = [one for one in chosen if not _sent(aws, deployed.function, queue, one)]
        events = [one for one in events if one not in chosen or one in failed]
        return FINDING if failed or refused else FINE
    finally:
        _give_back(aws, queue, events)


HEAD = ("ID", "KIND", "AGE", "NODE", "FROM", "ERROR", "REPLAY")


def received(aws: Aws, queue: str) -> list[Event]:
    found: dict[str, Event] = {}
    while len(found) < LONGEST_QUEUE:
        # Long polling asks all servers of SQS, also those with few messages.
        answer: Any = aws.call(
            *("sqs", "receive-message", "--queue-url", queue, "--max-number-of-messages", str(BATCH), "--wait-time-seconds", "2"),
            *("--visibility-timeout", str(HIDDEN_S), "--message-attribute-names", "All", "--attribute-names", "SentTimestamp"),
        )
        events = [read(message) for message in answer.get("Messages", [])]
        if not {one.id for one in events} - found.keys():
            break
        found.update((one.id, one) for one in events)
    return sorted(found.values(), key=lambda one: one.time)


def _chosen(events: list[Event], options: argparse.Namespace, now: datetime) -> tuple[list[Event], list[Event]]:
    """Events to send, and those that were named and are refused."""
    if unknown := [one for one in options.ids if one not in {event.id for event in events}]:
        raise Found(f"the failure queue has no event {', '.join(unknown)}: see the first column of spillway replay")
    named = [one for one in events if options.all or one.id in options.ids]
    refused = [one for one in named if one.payload is None or (one.why_not(now) and not options.force)]
    return [one for one in named if one not in refused], refused


def _sent(aws: Aws, function: str, queue: str, event: Event) -> bool:
    """Sends one event. Its message is deleted only after Lambda has accepted the event."""
    try:
        accepted, _ = aws.invoke(function, event.payload, "--invocation-type", "Event")
        if accepted.get("StatusCode") != ACCEPTED:
            raise AwsError("", f"Lambda answered {accepted.get('StatusCode')}")
    except AwsError as error:
        print(f"spillway replay: {event.id} is not accepted and stays in the queue: {error}", file=sys.stderr)
        return False
    try:
        aws.call("sqs", "delete-message", "--queue-url", queue, "--receipt-handle", event.receipt_handle)
    except AwsError as error:
        # The next run would send the event a second time, which the function survives: docs/what-happens.md.
        print(f"spillway replay: {event.id} is sent, and its message stays in the queue: {error}", file=sys.stderr)
        return False
    print(f"{event.id} is sent", file=sys.stderr)
    return True


def _give_back(aws: Aws, queue: str, events: list[Event]) -> None:
    """Lets other readers see the messages at once. Best effort: they come back by themselves."""
    for one in events:
        try:
            aws.call("sqs", "change-message-visibility", "--queue-url", queue, "--receipt-handle", one.receipt_handle, "--visibility-timeout", "0")
        except AwsError:
            return


def _row(event: Event, now: datetime, force: bool) -> tuple[str, ...]:
    why_not = None if force and event.payload is not None else event.why_not(now)
    origin = "Lambda" if event.from_lambda else "EventBridge"
    error = event.error if len(event.error) <= 60 else f"{event.error[:59]}…"
    return (event.id, event.kind, age(now - event.time), event.node or event.instance or "-", origin, error, why_not or "send again")


def _document(event: Event, now: datetime) -> dict[str, Any]:
    return {
        "id": event.id,
        "kind": event.kind,
        "time": event.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "node": event.node or None,
        "instance": event.instance or None,
        "from": "Lambda" if event.from_lambda else "EventBridge",
        "error": event.error,
        "refused": event.why_not(now),
        "event": event.payload,
    }
