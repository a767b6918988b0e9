"""The command `spillway drill`: one AWS FIS experiment on one tagged spot node, up to its receipt."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from cli import FINDING, FINE, Failed, Found, files, stack
from cli import options as common
from cli.aws import Aws
from cli.stack import Stack
from receipt_timeline.drain import Drain, drains_of
from receipt_timeline.find import receipts_in
from receipt_timeline.log import fetched
from receipt_timeline.receipt import Fate, read
from receipt_timeline.text import text_of

# An instance without the tag is never interrupted, whatever is typed.
TAG = "spillway/drill"
EXPERIMENT = "spillway-drill"
TEMPLATE = "deploy/cloudformation/spot-interruption.yaml"
# FIS takes up to a minute to start, the notice two minutes, and CloudWatch some seconds.
PATIENCE, PAUSE_S = timedelta(minutes=8), 10
ENDED_BADLY = ("failed", "stopped", "cancelled")


@dataclass(frozen=True)
class Target:
    instance: str
    node: str
    cluster: str
    place: str


def parser() -> argparse.ArgumentParser:
    made = common.parser(
        "drill",
        f"Interrupts one spot node for real, by an AWS FIS experiment, waits for its receipt, and shows the receipt. The instance needs the tag {TAG}; "
        "it does not come back. The experiment is a stack of its own, which is deleted at the end. Exit code 1: pods were lost, the drain failed, "
        "or no receipt came. Rights: docs/permissions.md.",
        "spillway drill i-0123456789abcdef0 --plan",
    )
    made.add_argument("instance", nargs="?", metavar="INSTANCE", help=f"default: the only instance with the tag {TAG}")
    made.add_argument("--plan", action="store_true", help="only show which node would be interrupted, and how")
    made.add_argument("--yes", action="store_true", help="do not ask: for a pipeline")
    return made


def run(options: argparse.Namespace) -> int:
    deployed = stack.read(Aws(options.region), options.stack)
    aws = Aws(deployed.region)
    target = chosen(aws, options.instance)
    print(plan(target, deployed), file=sys.stderr)
    if options.plan or not common.agreed(f"Interrupt {target.instance}? It does not come back.", options.yes):
        return FINE
    began = datetime.now(timezone.utc)
    try:
        drain, receipts = _receipt(aws, deployed, target, _started(aws, target), began)
    finally:
        aws.call("cloudformation", "delete-stack", "--stack-name", EXPERIMENT)
    print(json.dumps(receipts, indent=2) if options.output == "json" else text_of([drain]))
    is_bad = drain.ending != "drained" or any(pod.fate is Fate.LOST for pod in drain.pods)
    return FINDING if is_bad and not drain.dry_run else FINE


def chosen(aws: Aws, instance: str | None) -> Target:
    """The tagged, running spot instance; refuses any other."""
    filters = [f"Name=tag-key,Values={TAG}"] if instance is None else [f"Name=instance-id,Values={instance}"]
    reservations = aws.call("ec2", "describe-instances", "--filters", *filters)["Reservations"]
    found = [one for each in reservations for one in each["Instances"] if instance or one["State"]["Name"] == "running"]
    tag_it = f"aws ec2 create-tags --resources {instance or 'INSTANCE'} --tags Key={TAG},Value="
    if not found:
        raise Failed(f"there is no instance {instance}" if instance else f"no running instance has the tag {TAG}: choose a spot node and tag it: {tag_it}")
    if len(found) > 1:
        raise Failed(f"{len(found)} instances have the tag {TAG}: name one: {', '.join(sorted(one['InstanceId'] for one in found))}")
    return _target(found[0], tag_it)


def _target(one: dict[str, Any], tag_it: str) -> Target:
    tags = {tag["Key"]: tag.get("Value", "") for tag in one.get("Tags", [])}
    name = one["InstanceId"]
    if one["State"]["Name"] != "running":
        raise Failed(f"instance {name} is {one['State']['Name']}")
    if one.get("InstanceLifecycle") != "spot":
        raise Failed(f"instance {name} is no spot instance, and FIS interrupts no other: end it by its group (docs/drills.md)")
    if TAG not in tags:
        raise Failed(f"instance {name} has not the tag {TAG}: if it may go, tag it: {tag_it}")
    prefix = "kubernetes.io/cluster/"
    cluster = tags.get("aws:eks:cluster-name") or next((key[len(prefix) :] for key in sorted(tags) if key.startswith(prefix)), "")
    if not cluster:
        raise Failed(f"instance {name} has no tag {prefix}NAME, by which Spillway finds its cluster")
    return Target(name, one.get("PrivateDnsName") or name, cluster, f"{one.get('InstanceType')} in {one.get('Placement', {}).get('AvailabilityZone')}")


def plan(target: Target, deployed: Stack) -> str:
    lines = [
        f"The drill interrupts {target.instance} ({target.place}), node {target.node} of cluster {target.cluster}:",
        f"  1. the stack {EXPERIMENT} from {TEMPLATE}: an FIS experiment for this instance, and its role",
        "  2. the experiment: EC2 sends the notice at once, and takes the instance two minutes later",
        "  3. the receipt from the function's log",
        f"  4. the stack {EXPERIMENT} is deleted",
    ]
    lines += ["The stack has DryRun=true: the receipt says what would be done."] if deployed.is_dry_run else []
    lines += [f"! the stack ignores cluster {target.cluster}: its parameter Clusters names others"] if not deployed.serves(target.cluster) else []
    return "\n".join(lines)


def _started(aws: Aws, target: Target) -> str:
    template = files.root() / TEMPLATE
    aws.text(
        *("cloudformation", "deploy", "--stack-name", EXPERIMENT, "--template-file", str(template), "--capabilities", "CAPABILITY_IAM"),
        *("--no-fail-on-empty-changeset", "--parameter-overrides", f"InstanceId={target.instance}"),
    )
    resource = aws.call("cloudformation", "describe-stack-resource", "--stack-name", EXPERIMENT, "--logical-resource-id", "Experiment")
    template_id = resource["StackResourceDetail"]["PhysicalResourceId"]
    return str(aws.call("fis", "start-experiment", "--experiment-template-id", template_id)["experiment"]["id"])


def _receipt(aws: Aws, deployed: Stack, target: Target, experiment: str, began: datetime) -> tuple[Drain, list[Any]]:
    """The drain of the interruption, once its receipt is in the log."""
    group = deployed.output("LogGroupName")
    print(f"experiment {experiment} has started; waiting for the receipt …", file=sys.stderr)
    while datetime.now(timezone.utc) < began + PATIENCE:
        time.sleep(PAUSE_S)
        lines = fetched(aws, group, began, datetime.now(timezone.utc))
        receipts = [one for one in receipts_in("\n".join(lines)) if one.get("instance") == target.instance] if lines else []
        drains = [one for one in drains_of([read(one) for one in receipts]) if one.kind == "spot interruption" and one.ending != "continued"]
        if drains:
            return drains[-1], receipts
        state = aws.call("fis", "get-experiment", "--id", experiment)["experiment"]["state"]
        if state.get("status") in ENDED_BADLY:
            raise Failed(f"the experiment {experiment} {state['status']}: {state.get('reason', 'FIS gives no reason')}")
    raise Found(f"no receipt of {target.instance} came within {PATIENCE.seconds // 60} minutes: see docs/troubleshooting.md#nothing-happened")
