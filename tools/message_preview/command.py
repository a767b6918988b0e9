"""The command `spillway preview`: renders by the program beside the tools, else by the deployed announcer."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cli import FINDING, FINE, Failed, stack
from cli import options as common
from cli.aws import Aws

NAME = "announce-preview"


def parser() -> argparse.ArgumentParser:
    made = common.parser(
        "preview",
        "Prints the messages about sample drains, and sends none. It renders by the program that a release has beside the tools, or that Cargo "
        "has built; else by the announcer of the stack (rights: cloudformation:DescribeStacks and DescribeStackResource, lambda:InvokeFunction). A message that cannot "
        "be made is exit code 1.",
        "spillway preview --template slack.tmpl",
    )
    form = made.add_mutually_exclusive_group()
    form.add_argument("--template", metavar="FILE", help="a Go template; - is standard input")
    form.add_argument("--document", metavar="FILE", help="a webhook's document; - is standard input")
    form.add_argument("--format", choices=("slack", "json", "text"), default="slack", help="default: %(default)s")
    return made


def run(options: argparse.Namespace) -> int:
    form = next(name for name in ("template", "document", "format") if getattr(options, name))
    given = getattr(options, form)
    if form != "format":
        given = sys.stdin.read() if given == "-" else Path(given).read_text(encoding="utf-8")
    shown, failed = rendered(form, given) if program() else _by_announcer(form, given, options)
    if options.output == "json":
        print(json.dumps({"messages": shown, "error": failed or None}, indent=2))
    else:
        print((failed or shown).rstrip("\n"), file=sys.stderr if failed else sys.stdout)
    return FINDING if failed else FINE


def program() -> str | None:
    """The renderer of a release, or one that Cargo has built. Nothing is built for it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or cache / "spillway/target")
    folders = [Path(__file__).parents[1] / "bin", target / "release", target / "debug"]
    return shutil.which(NAME, path=os.pathsep.join(map(str, folders)))


def rendered(form: str, given: str) -> tuple[str, str]:
    found = program()
    assert found, "asked only where there is one"
    done = subprocess.run([found, f"--{form}", given if form == "format" else "-"], input=given, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr.strip() if done.returncode else ""


def _by_announcer(form: str, given: str, options: argparse.Namespace) -> tuple[str, str]:
    missing = f"there is no program {NAME}: neither in tools/bin nor built by cargo build --package spillway-announce"
    try:
        deployed = stack.read(Aws(options.region), options.stack)
        aws = Aws(deployed.region)
        if not deployed.parameters.get("Webhook") and not deployed.parameters.get("TopicArn"):
            raise Failed(f"the stack {deployed.name} has neither Webhook nor TopicArn")
        named = ("--stack-name", deployed.name, "--logical-resource-id", "Announcer")
        function = aws.call("cloudformation", "describe-stack-resource", *named)["StackResourceDetail"]["PhysicalResourceId"]
        accepted, answer = aws.invoke(function, {"spillway-preview": {form: given}})
    except Failed as error:
        raise Failed(f"{missing}, and no deployed announcer: {error}") from None
    if accepted.get("FunctionError"):
        raise Failed(f"the announcer {function} failed: {answer.get('errorMessage') if isinstance(answer, dict) else answer}")
    return str(answer.get("messages", "")), str(answer.get("error") or "")
