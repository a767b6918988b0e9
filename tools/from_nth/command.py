"""The command line: values in, the report and the parameters out."""

import argparse
import json
import shutil
import sys
from pathlib import Path

from . import sam, template, values
from .answers import Verdict
from .installation import Installation, installation
from .parameters import document
from .report import Conversion, convert, render, setting

DESCRIPTION = """\
Reads the Helm values of aws-node-termination-handler and says, for each of them, what Spillway has for it.

  helm get values RELEASE --namespace NAMESPACE >nth-values.yaml
  tools/from-nth nth-values.yaml                                # the report
  tools/from-nth --samconfig samconfig.toml nth-values.yaml     # and the section from-nth of samconfig.toml

A HelmRelease of Flux and an Application of Argo CD are taken as they are.
"""
# Wider, and the eye loses the line.
WIDEST = 110
FILE = "nth-values.yaml"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "from-nth", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "file", nargs="?", default="-", help="the values, YAML or JSON; - or nothing reads standard input"
    )
    parser.add_argument("--cluster", metavar="NAME", help="NTH's cluster: Spillway keeps to it")
    parser.add_argument("--live", action="store_true", help="with DryRun=false; without it, DryRun=true")
    parser.add_argument("--all", action="store_true", help="show what is not needed too, and why")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        type=parameter,
        help="a parameter of Spillway's own, which wins over what NTH's values say; may be given several times",
    )
    parser.add_argument(
        "--hook",
        action="append",
        default=[],
        metavar="NAME",
        help="a terminate hook of your groups that Spillway is to complete, for the parameter Hooks; may be given several times",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--samconfig",
        metavar="FILE",
        help=f"write the section {sam.ENVIRONMENT} of this samconfig.toml, in place of the one that is there",
    )
    form.add_argument(
        "--overrides", action="store_true", help="write --parameter-overrides …; the report goes to standard error"
    )
    form.add_argument(
        "--webhook", action="store_true", help="write the webhook's document, which has its secrets, and nothing else"
    )
    parser.add_argument("--webhook-url", metavar="URL", default="", help="with --webhook: the address, if a Secret has it")
    parser.add_argument(
        "--webhook-template", metavar="TEXT", default="", help="with --webhook: the template, if a ConfigMap has it"
    )
    options = parser.parse_args(arguments)
    if options.file == "-" and sys.stdin.isatty():
        parser.error("no values: name a file, or pipe `helm get values` into it")

    try:
        return run(installation(values.read(content(options.file))), options)
    except (values.Unusable, sam.Unsayable) as error:
        source = "standard input" if options.file == "-" else options.file
        print(f"from-nth: {source}: {error}", file=sys.stderr)
        return 1


def run(nth: Installation, options: argparse.Namespace) -> int:
    if options.webhook:
        print(json.dumps(document(nth, options.webhook_url, options.webhook_template), ensure_ascii=False))
        return 0
    hooks = {"Hooks": ",".join(dict.fromkeys(options.hook))} if options.hook else {}
    conversion = convert(nth, template.parameters(), options.cluster, options.live, hooks | dict(options.set))
    width = min(WIDEST, shutil.get_terminal_size((100, 24)).columns)
    report = render(conversion, width, options.all)
    if options.overrides:
        sys.stderr.write(report)
        print(sam.overrides(conversion.parameters))
    elif options.samconfig:
        write_section(Path(options.samconfig), conversion.parameters)
        sys.stdout.write(report)
        print(f"\nThe section {sam.ENVIRONMENT} of {options.samconfig} is written: sam deploy --config-env {sam.ENVIRONMENT}")
    else:
        sys.stdout.write(report + closing(conversion, options))
    if (options.overrides or options.samconfig) and left_out(conversion):
        # Not 0, so that no `&& sam deploy` follows: without DryRun, say, it would drain.
        print(
            "\nfrom-nth: this version lacks some of the parameters; without them Spillway does its default",
            file=sys.stderr,
        )
        return 2
    return 0


def parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def write_section(file: Path, parameters: dict[str, str]) -> None:
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        try:
            after = sam.with_section(before, parameters)
        except sam.Unsayable as error:
            raise sam.Unsayable(f"{file}: {error}") from None
        file.write_text(after, encoding="utf-8")
    except OSError as error:
        raise sam.Unsayable(f"{file} cannot be written: {error.strerror}") from None


def content(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise values.Unusable(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise values.Unusable("it is not text in UTF-8") from None


def left_out(conversion: Conversion) -> bool:
    return any(line.answer.verdict is Verdict.NOT_IN_THIS_VERSION for line in conversion.lines)


def closing(conversion: Conversion, options: argparse.Namespace) -> str:
    """What to deploy, and in which order: as docs/from-nth.md has it."""
    pairs = [f"  {setting(name, value, WIDEST)}" for name, value in conversion.parameters.items()]
    cluster = f" --cluster {options.cluster}" if options.cluster else " --cluster NAME"
    file = FILE if options.file == "-" else options.file
    tool = f"tools/from-nth --samconfig samconfig.toml{cluster}"
    deploy = f"sam deploy --config-env {sam.ENVIRONMENT}"
    out = ["", f"PARAMETERS ({len(pairs)})", *(pairs or ["  None that this version has."])]
    out += ["", "To change over, in this order (docs/from-nth.md has the whole way):"]
    out += [f"  1. {tool} {file} && {deploy}      # a dry run"]
    out += [f"  2. tools/enroll{cluster}"]
    out += ["  3. scripts/doctor, and the receipts of real notices"]
    out += [f"  4. {tool} --live {file} && {deploy}"]
    out += ["  5. scripts/doctor"]
    if "ManagedTag" in conversion.parameters:
        out += ["  6. group by group: Spillway's tag on, then NTH's tag off"]
        out += ["  7. uninstall NTH, when no instance has its tag any more"]
    else:
        out += ["  6. a drill, and then uninstall NTH: until then both act on each node"]
    out += ["What each parameter does: docs/settings.md"]
    return "\n".join(out) + "\n"
