"""What a case demands of the place where ggml's scheduler runs its nodes."""

from gradcheck.model.case import Case
from gradcheck.model.result import Placement


def misplaced(case: Case, placement: Placement | None, target: str) -> list[str]:
    """A sentence for every op that ran elsewhere than the case demands; none where nothing was scheduled."""
    if placement is None or not case.placement:
        return []
    wanted, words = (target, "the target") if case.placement == "target" else (placement.fallback, "the CPU")
    elsewhere = dict.fromkeys(node for node in placement.nodes if node[1] != wanted)
    return [f"{op} ran on {device}, the case expects it on {words}" for op, device in elsewhere]
