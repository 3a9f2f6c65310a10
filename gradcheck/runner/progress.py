"""How far a job with many seeds has come, so that an ending that its worker cannot tell has a seed."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from gradcheck.model.codec import decode
from gradcheck.model.result import Outcome
from gradcheck.model.trial import Trial, Trials

#: An answer can be long: it is not parsed to find out that it is no progress.
_MARK = b'{"progress":'

Measures = tuple[tuple[str, float | None], ...]


@dataclass
class Progress:
    """What a worker has told of the job in hand: the seed that runs now, and what those before it gave."""

    seed: int | None = None
    measures: Measures = ()
    trials: list[Trial] = field(default_factory=list)

    def hear(self, line: bytes, index: int) -> bool:
        """Take in a line; whether it was one of progress, and of the job with this index."""
        if not line.startswith(_MARK):
            return False
        try:
            body: dict[str, Any] = json.loads(line)["progress"]
            if body["index"] != index:
                return False
            self.seed = int(body["seed"])
            self.measures = decode(Measures, body["measures"])
            if body["trial"] is not None:
                self.trials.append(decode(Trial, body["trial"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return True

    def ended(self, outcome: Outcome) -> Outcome:
        """The outcome of a worker's death or silence, with the seed at which it came and the trials before."""
        if self.seed is None:
            return outcome
        last = Trial(self.seed, outcome.status, (), outcome.reason)
        trials = Trials(self.seed, self.measures, (*self.trials, last))
        return replace(
            outcome, reason=trials.explain(outcome.reason), counts=(*trials.counts, *outcome.counts), trials=trials
        )
