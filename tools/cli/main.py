"""The command `spillway`: finds the subcommand, and ends each of them in the same way."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from importlib import import_module

from . import COULD_NOT_LOOK, FINDING, FINE, Failed, Found, files, printable

# The module and the purpose of each subcommand. A module has `parser()` and `run(options)`.
COMMANDS = {
    "enroll": ("cluster_enrollment.command", "lets the function into clusters, and puts its hooks on their groups"),
    "doctor": ("doctor_report.command", "has the function check whether the next notice would be handled"),
    "drains": ("live_drains.command", "shows current drains, in all clusters"),
    "show": ("receipt_timeline.command", "shows past drains by their receipts, as text, page or JSON"),
    "replay": ("failed_events.command", "shows the events of the failure queue, and sends them again"),
    "drill": ("fault_drill.command", "interrupts one spot node by AWS FIS, and shows the receipt"),
    "preview": ("message_preview.command", "renders the messages of sample drains, and sends none"),
    "from-nth": ("from_nth.command", "turns Helm values of aws-node-termination-handler into parameters"),
    "completion": ("cli.completion", "prints a completion script for bash and zsh"),
}
HELP = """\
usage: spillway COMMAND [OPTION…]

{commands}

  spillway COMMAND --help     options and an example
  spillway --version

Common options: --profile, --region, --stack, -o json. NO_COLOR is respected.
Exit codes: 0 fine; 1 a finding; 2 could not look
"""


def main(arguments: list[str]) -> int:
    """Runs one subcommand. Nothing that goes wrong ends in a traceback."""
    name = ""
    try:
        name, *rest = arguments or ["--help"]
        if "--version" in arguments:
            print(f"spillway {files.version()}")
            return FINE
        if name in ("-h", "--help", "help"):
            print(HELP.format(commands="\n".join(f"  {each:<12}{words}" for each, (_, words) in COMMANDS.items())), end="")
            return FINE
        if name not in COMMANDS:
            unknown, name = name, ""
            raise Failed(f"there is no command {unknown}; there are: {', '.join(COMMANDS)}")
        module = import_module(COMMANDS[name][0])
        options = module.parser().parse_args(rest)
        if getattr(options, "profile", None):
            os.environ["AWS_PROFILE"] = options.profile
        return int(module.run(options) or FINE)
    except KeyboardInterrupt:
        print(f"\nspillway {name}: stopped; another run does the rest", file=sys.stderr)
        return FINDING
    except BrokenPipeError:
        # The reader has closed the pipe. Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except Exception as error:  # noqa: BLE001
        if os.environ.get("SPILLWAY_TRACEBACK"):
            raise
        print(f"spillway{f' {name}' if name else ''}: {_words(error)}", file=sys.stderr)
        return FINDING if isinstance(error, Found) else COULD_NOT_LOOK


def command() -> None:
    sys.exit(main(sys.argv[1:]))


def parsers() -> dict[str, ArgumentParser]:
    return {name: import_module(module).parser() for name, (module, _) in COMMANDS.items()}


def _words(error: Exception) -> str:
    if isinstance(error, (Failed, Found)):
        return "".join(character if character.isprintable() or character == "\n" else " " for character in str(error))
    if isinstance(error, OSError) and error.filename:
        return printable(f"{error.filename}: {error.strerror}")
    if isinstance(error, OSError):
        return printable(str(error))
    # A defect, or an answer of AWS or Kubernetes in an unknown form.
    return f"unexpected {printable(repr(error))}; SPILLWAY_TRACEBACK=1 shows the place, for a report"
