"""The command `spillway completion`: a script for the shell, from the options of all subcommands."""

from __future__ import annotations

import argparse

from . import options

SCRIPT = """\
# bash: source <(spillway completion); zsh: the same, after: autoload -U +X bashcompinit && bashcompinit
_spillway() {{
  local words
  case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
    1:*) words="{commands}" ;;
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _spillway spillway"""


def parser() -> argparse.ArgumentParser:
    return options.parser("completion", "Prints a completion script for bash and zsh.", "source <(spillway completion)", (), needs_stack=False)


def run(_: argparse.Namespace) -> None:
    from .main import parsers

    of = parsers()
    cases = [f'    *:{name}) words="{" ".join(_options(one))}" ;;' for name, one in of.items()]
    print(SCRIPT.format(commands=" ".join([*of, "--help", "--version"]), cases="\n".join(cases)))


def _options(one: argparse.ArgumentParser) -> list[str]:
    return [text for action in one._actions for text in action.option_strings if text.startswith("--")]
