"""The one-line command that runs exactly one case of a run again."""

import shlex
from dataclasses import replace

from gradcheck.model.job import Settings
from gradcheck.model.result import Result
from gradcheck.model.run import RunInfo

#: Setting -> option; an option that has its default value is not repeated.
_OPTIONS: dict[str, str] = {
    "cotangent": "--cotangent",
    "cotangents": "--cotangents",
    "method": "--method",
    "max_elements": "--max-elements",
    "threads": "--threads",
    "budget_s": "--budget",
    "reference": "--reference",
    "repeat": "--repeat",
    "backward": "--backward",
    "sched": "--sched",
    "alloc": "--alloc",
}

#: Options of the command that no record holds but that a repetition needs, and whether they take a value.
_CARRIED: dict[str, bool] = {
    "--case": True,
    "--cases-of": True,
    "--timeout": True,
    "--max-memory": True,
    "--no-isolation": False,
}


def repeat_command(info: RunInfo, result: Result) -> str:
    """The shell command that repeats `result`, quoted, with every setting that differs from its default.

    Of many seeds it is the one that the outcome tells of.
    """
    words = ["gradcheck", result.mode, "-b", result.target, "-o", result.case_id]
    trials = result.outcome.trials
    words += ["--seed", str(trials.worst if trials else info.settings.seed)]
    words += _changed_settings(info.settings)
    if result.mode == "perf" and "--threads" not in words:
        words += ["--threads", str(info.settings.threads)]  # the default of perf is another one
    words += carried_options(info.command)
    return shlex.join(words)


def carried_options(command: tuple[str, ...]) -> list[str]:
    """The words of a command that choose case files and the worker's bounds."""
    carried: list[str] = []
    words = iter(command)
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in _CARRIED:
            continue
        carried.append(word)
        if _CARRIED[name] and not equals:
            carried += [value for value in (next(words, None),) if value is not None]
    return carried


def _changed_settings(settings: Settings) -> list[str]:
    defaults = Settings()
    words = []
    if settings.more_threads:
        words = ["--threads", ",".join(map(str, (settings.threads, *settings.more_threads)))]
        settings = replace(settings, threads=defaults.threads)
    for name, option in _OPTIONS.items():
        value = getattr(settings, name)
        if value != getattr(defaults, name):
            words += [option] if value is True else [option, str(value)]
    for name, limit in settings.limits:
        words += ["--limit", f"{name}={limit!r}"]
    return words
