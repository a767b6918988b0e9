"""For each value what becomes of it, in words."""

from . import drain, messages, notices, running
from .answer import Answer, Answers, Verdict

ANSWERS: Answers = notices.ANSWERS | drain.ANSWERS | messages.ANSWERS | running.ANSWERS

__all__ = ["ANSWERS", "Answer", "Verdict"]
