"""The command line of scripts/smoke."""

import argparse
import json
import signal
import sys
import tarfile
import tempfile
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from smoke import events, stage_a, stage_b, step, teardown
from smoke.aws import Account
from smoke.programs import Real
from smoke.run import TAG, Run
from smoke.step import SmokeError, Step


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.plan:
        print(step.plan("Stage A", stage_a.steps()))
        print(step.plan("Stage B", stage_b.steps()))
        print(f"All of it has the tag {TAG} and is taken away at the end, also after a failure.")
        return 0
    if options.bundle is None:
        print("scripts/smoke: which release? --bundle dist/spillway-VERSION.tar.gz (make release)", file=sys.stderr)
        return 2
    # A workflow that is cancelled tears down too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix=f"{TAG}-") as folder:
            run = _begin(options, Path(folder))
            todo = stage_a.steps() + (stage_b.steps() if options.stage == "B" else [])
            carry_out(run, todo, options.record)
    except (SmokeError, ClientError, BotoCoreError) as failed:
        print(f"scripts/smoke: {failed}", file=sys.stderr)
        return 1
    print("Everything is as the release says, and taken away.")
    return 0


def carry_out(run: Run, steps: list[Step[Run]], record: Path | None) -> None:
    """The steps one after the other, and whatever happens, the teardown."""
    try:
        for one in steps:
            run.say(f"{one.name}: {one.does}")
            one.run(run)
    finally:
        # Ctrl-C ends a wait, not the teardown.
        try:
            if "Recorder" in run.outputs:
                compare(run, record)
        finally:
            run.say("teardown: takes all of it away")
            teardown.everything(run)


def compare(run: Run, record: Path | None) -> None:
    """Says where real events differ from the samples, and keeps them. A difference is a finding, not a failure."""
    seen = stage_b.recorded(run)
    samples = {path.stem: json.loads(path.read_text()) for path in (run.bundle / "events").glob("*.json")}
    for event in seen:
        if (found := events.nearest(event, samples)) and found[1]:
            run.say(f"    {event['detail-type']}, beside events/{found[0]}.json: {'; '.join(found[1])}")
    if record:
        events.keep(seen, record, run.account)


def _begin(options: argparse.Namespace, folder: Path) -> Run:
    with tarfile.open(options.bundle) as tar:
        tar.extractall(folder, filter="data")
    (unpacked,) = (one for one in folder.iterdir() if (one / "template.yaml").is_file())
    aws = Account(options.region)
    arn = aws.call("sts", "GetCallerIdentity")["Arn"].split(":")
    run = Run(aws, Real(options.region, folder), account=arn[4], partition=arn[1], bundle=unpacked, folder=folder)
    if left := teardown.tagged(run):
        raise SmokeError(f"another run is under way, or was killed: {', '.join(left)} have the tag {TAG}={run.name}")
    return run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/smoke", description="Tries a release on a real account, and takes everything away again."
    )
    parser.add_argument("region", metavar="REGION", help="such as us-east-1")
    parser.add_argument(
        "--plan", action="store_true", help="only say what would be done, and what it costs; calls nobody"
    )
    stages = "B is A, and then a cluster: about an hour"
    parser.add_argument("--stage", choices=("A", "B"), default="A", help=stages)
    parser.add_argument("--bundle", type=Path, help="the release: dist/spillway-VERSION.tar.gz")
    parser.add_argument(
        "--record", type=Path, metavar="FOLDER", help="keep the real events there, without the account's id"
    )
    return parser
