"""The command `spillway`: finds the subcommand, and ends each of them in the same way.

Exit codes of every subcommand: 0 fine, 1 a finding, 2 could not look.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from pathlib import Path

from . import printable

FINE, FINDING, COULD_NOT_LOOK = 0, 1, 2
TEMPLATE = Path(__file__).parents[2] / "template.yaml"
# Each subcommand's module, and what it is for.
COMMANDS = {
    "enroll": ("cluster_enrollment", "lets the function into clusters, and puts its hooks on their groups"),
    "doctor": ("doctor_report", "has the function look whether the next notice would be handled"),
    "drains": ("live_drains", "what drains now, in all clusters"),
    "show": ("receipt_timeline", "what became of drains: their receipts as text, as a picture or as JSON"),
    "from-nth": ("from_nth", "from the Helm values of aws-node-termination-handler to parameters"),
}
HELP = """\
usage: spillway COMMAND [OPTION…]

{commands}

  spillway COMMAND --help      the options of a command
  spillway --version

With --profile NAME a command works with that profile of the AWS CLI.
0: fine; 1: a finding; 2: could not look
"""


def main(arguments: list[str]) -> int:
    """Runs one subcommand. Nothing that goes wrong ends in a traceback."""
    try:
        name, *rest = _with_profile(arguments) or ["--help"]
        if "--version" in (name, *rest[:1]):
            print(f"spillway {version()}")
            return FINE
        if name in ("-h", "--help", "help"):
            print(HELP.format(commands="\n".join(f"  {name:<10}{words}" for name, (_, words) in COMMANDS.items())), end="")
            return FINE
        if name not in COMMANDS:
            raise ValueError(f"there is no command {name}; there are: {', '.join(COMMANDS)}")
        return import_module(f"{COMMANDS[name][0]}.command").main(rest)
    except KeyboardInterrupt:
        return FINDING
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except Exception as error:  # noqa: BLE001
        if os.environ.get("SPILLWAY_TRACEBACK"):
            raise
        foreseen = isinstance(error, (OSError, ValueError))
        # A fault of ours, or an answer of AWS or Kubernetes in a shape that nobody expected.
        said = printable(str(error)) if foreseen else f"unexpected {printable(repr(error))}; SPILLWAY_TRACEBACK=1 shows where, for a report"
        print(f"spillway: {said}", file=sys.stderr)
        return COULD_NOT_LOOK


def version() -> str:
    """That of the template beside the tools."""
    found = re.search(r"^    SemanticVersion: (.+)$", TEMPLATE.read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def _with_profile(arguments: list[str]) -> list[str]:
    """The arguments without --profile, which the AWS CLI reads from the environment."""
    if "--profile" not in arguments:
        return arguments
    at = arguments.index("--profile")
    if len(arguments) < at + 2:
        raise ValueError("--profile needs a name")
    os.environ["AWS_PROFILE"] = arguments[at + 1]
    return arguments[:at] + arguments[at + 2 :]
