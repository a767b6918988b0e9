"""`sam deploy --guided`, the real one at a terminal: who only presses Enter comes to the end."""

import os
import pty
import re
import selectors
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from sam_cli import SAM, environment, installed, recorder
from test_template import PARAMETERS, ROOT

# Longer than any start of the SAM CLI; a prompt is answered as soon as it is there.
PATIENCE_S = 60
# What is asked beside the parameters: the stack's name, its Region, and six more about the deployment.
OTHER_QUESTIONS = 12
PROMPT = re.compile(r"[:?] ?$")


def plain(screen: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", screen)


def press_enter_until(asked: list[str], command: list[str], folder: Path, variables: dict[str, str]) -> list[str]:
    """Answers every prompt with Enter, until AWS is asked for something. The lines that stood on the screen."""
    ours, its = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, env=variables, stdin=its, stdout=its, stderr=its, close_fds=True)
    os.close(its)
    screen, prompts, deadline = "", 0, time.monotonic() + PATIENCE_S
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(ours, selectors.EVENT_READ)
            while not asked and time.monotonic() < deadline and prompts <= len(PARAMETERS) + OTHER_QUESTIONS:
                # A prompt with hidden input throws away what was typed before it; so it is answered again.
                if selector.select(timeout=1):
                    try:
                        screen += os.read(ours, 4096).decode(errors="replace")
                    except OSError:
                        break
                if PROMPT.search(plain(screen)):
                    prompts += 1
                    os.write(ours, b"\n")
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return plain(screen).replace("\r", "").splitlines()


class Guided(unittest.TestCase):
    def test_ends_with_nothing_but_enter(self) -> None:
        with tempfile.TemporaryDirectory() as name, recorder() as aws:
            folder = installed(ROOT, Path(name))
            command = [str(SAM), "deploy", "--guided", "--region", "eu-central-1"]
            screen = press_enter_until(aws.asked, command, folder, environment(folder, aws.url))
        self.assertTrue(aws.asked, "SAM asked AWS for nothing; the last lines were:\n" + "\n".join(screen[-8:]))
        self.assertEqual(re.findall(r"Parameter (\w+)", "\n".join(screen)), list(PARAMETERS), "each is asked for once")


if __name__ == "__main__":
    unittest.main()
