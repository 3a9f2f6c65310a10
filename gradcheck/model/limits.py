"""The default limits of every mode's metrics; a case's own and the command line's win over them."""

from collections.abc import Mapping

from gradcheck.model.case import Case
from gradcheck.model.job import Settings

#: mode -> metric -> limit. A metric fails above its limit.
DEFAULT_LIMITS: dict[str, dict[str, float]] = {
    "grad": {
        "maa": 1e-3,  # mean absolute asymmetry over the judged elements
        "element": 5e-3,  # the worst single element, beyond its own uncertainty
        "rel_l2": 1e-3,  # relative L2 error of a param's gradient, beyond its uncertainty
        "kinks": 0.05,  # share of the elements at which no numeric gradient exists
    },
    "eval": {
        "nmse": 1e-7,  # normalised mean squared error, as in the C++ tool
        # the worst single element, in units of its size and the RMS together; 0: ten times the root of nmse's limit
        "element": 0.0,
    },
    "perf": {},
    "support": {},
}

#: The modes that a user can ask for, and that a case file can speak of.
MODES = tuple(DEFAULT_LIMITS)


def limits_for(mode: str, case: Case, settings: Settings) -> Mapping[str, float]:
    """The limits that hold for a case: defaults, then the case's, then the command line's."""
    known = DEFAULT_LIMITS[mode]
    given = {name: value for name, value in case.limits if name in known}
    asked = {name: value for name, value in settings.limits if name in known}
    return {**known, **given, **asked}
