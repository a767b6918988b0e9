"""A command on as many lines as it needs, such that a shell takes them for one."""

from __future__ import annotations


def lines(command: str, width: int) -> list[str]:
    """Broken at spaces, with a backslash; not within quotes, where the next line's indent would be part of the text."""
    broken, line = [], ""
    for word in _words(command):
        if line and len(line) + 1 + len(word) > width - 2:
            broken.append(f"{line} \\")
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    return [*broken, line]


def _words(command: str) -> list[str]:
    """The command between its spaces. What is quoted is one word, but for "$(…)", which is a command again."""
    words, quote = [""], ""
    for at, character in enumerate(command):
        around_command = command.startswith('"$(', at) or command[at - 1 : at + 1] == ')"'
        if character == quote:
            quote = ""
        elif character in "'\"" and not quote and not around_command:
            quote = character
        if character == " " and not quote:
            words.append("")
        else:
            words[-1] += character
    return [word for word in words if word]
