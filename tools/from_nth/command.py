"""The command line: values in, the report and the parameters out."""

import argparse
import shutil
import sys
from pathlib import Path

from . import sam, template, values
from .answers import Verdict
from .installation import installation
from .report import Conversion, convert, render, setting

DESCRIPTION = """\
Reads the Helm values of aws-node-termination-handler and says, for each of them, what Spillway has for it.

  helm get values RELEASE --namespace NAMESPACE | tools/from-nth
  tools/from-nth --samconfig values.yaml >>samconfig.toml && sam build && sam deploy --config-env from-nth
  eval "sam deploy $(tools/from-nth --overrides values.yaml)"
"""
# Wider, and the eye loses the line.
WIDEST = 110


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "from-nth", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "file", nargs="?", default="-", help="the values, YAML or JSON; - or nothing reads standard input"
    )
    parser.add_argument("--cluster", metavar="NAME", help="NTH's cluster: Spillway is let into it, and keeps to it")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--samconfig", action="store_true", help="write a section for samconfig.toml; the report goes to standard error"
    )
    form.add_argument(
        "--overrides", action="store_true", help="write --parameter-overrides …; the report goes to standard error"
    )
    options = parser.parse_args(arguments)
    if options.file == "-" and sys.stdin.isatty():
        parser.error("no values: name a file, or pipe `helm get values` into it")

    try:
        nth = installation(values.read(content(options.file)))
        conversion = convert(nth, template.parameters(), options.cluster)
        report = render(conversion, min(WIDEST, shutil.get_terminal_size((100, 24)).columns))
        if options.samconfig or options.overrides:
            write = sam.section if options.samconfig else lambda parameters: sam.overrides(parameters) + "\n"
            product = write(conversion.parameters)
            sys.stderr.write(report)
            sys.stdout.write(product)
            if left_out(conversion):
                # Not 0, so that no `&& sam deploy` follows: without DryRun, say, it would drain.
                print(
                    "\nfrom-nth: this version lacks some of the parameters; without them Spillway does its default",
                    file=sys.stderr,
                )
                return 2
        else:
            sys.stdout.write(report + closing(conversion, options))
    except (values.Unusable, sam.Unsayable) as error:
        source = "standard input" if options.file == "-" else options.file
        print(f"from-nth: {source}: {error}", file=sys.stderr)
        return 1
    return 0


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
    """What to deploy, and how."""
    none = (
        "None that this version has." if left_out(conversion) else "None: Spillway does by default what NTH was told."
    )
    pairs = [f"  {setting(name, value, WIDEST)}" for name, value in conversion.parameters.items()]
    cluster = "" if options.cluster else " --cluster NAME"
    out = ["", f"PARAMETERS ({len(pairs)})", *(pairs or [f"  {none}"])]
    out += ["", "To deploy with them:"]
    out += [
        f"  tools/from-nth --samconfig{cluster} FILE >>samconfig.toml && sam build && sam deploy --config-env "
        f"{sam.ENVIRONMENT}"
    ]
    out += ["What each of them does: docs/settings.md. How to change over on a live cluster: docs/from-nth.md"]
    return "\n".join(out) + "\n"
