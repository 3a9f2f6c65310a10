"""One case with many seeds: what each seed gave."""

from dataclasses import dataclass

from gradcheck.model.status import Status


@dataclass(frozen=True, slots=True)
class Trial:
    """What one seed gave; `values` are what metrics are beyond their uncertainty, as in `Trials.measures`."""

    seed: int
    status: Status
    values: tuple[float, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Trials:
    """Every seed of a case that gave a verdict, in order.

    worst: the seed that the case's outcome tells of: its status, reason, metrics and evidence
    measures: each metric's name with the limit that it was held against in all trials, None where it has none
    """

    worst: int
    measures: tuple[tuple[str, float | None], ...]
    runs: tuple[Trial, ...]

    @property
    def failed(self) -> int:
        """How many seeds ended badly."""
        return sum(trial.status.bad for trial in self.runs)

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """What an outcome counts of them: the seeds, and those that failed."""
        return (("seeds", len(self.runs)), ("failed", self.failed))

    def explain(self, reason: str) -> str:
        """Why the worst seed failed, with the share of those that did."""
        if len(self.runs) == 1:
            return f"with seed {self.worst}: {reason}"
        return f"{self.failed} of {len(self.runs)} seeds failed, the worst is {self.worst}: {reason}"


def of_limit(value: float, limit: float) -> float:
    """A value as a share of its limit; above 1 it fails. NaN for NaN, which is no measure."""
    if limit == 0:
        return float("inf") if value > 0 else 0.0
    return value / limit
