"""Cases and targets to jobs: what each is compared with."""

from dataclasses import replace

import pytest

from gradcheck.model.case import Case, KnownFailure
from gradcheck.model.job import Settings
from gradcheck.model.run import DeviceInfo
from gradcheck.model.status import Status
from gradcheck.plan import of_usual_size, plan
from tests.builders import make_case

RIGHT = make_case("out = silu(a)", a=(4,))
VULKAN = DeviceInfo("Vulkan0", "llvmpipe", "Vulkan", "GPU", 0, 0)
CPU = DeviceInfo("CPU", "a processor", "CPU", "CPU", 0, 0)


def wrong(mode: str, target: str) -> Case:
    return replace(RIGHT, known=(KnownFailure(mode, Status.FAIL, "upstream", "0.15.3", target),))


def reference(case: Case, target: DeviceInfo, mode: str = "eval", settings: Settings | None = None) -> str:
    (job,) = plan([case], [target], mode, settings or Settings(), 1.0)
    return job.settings.reference


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (RIGHT, "CPU"),
        (wrong("eval", "CPU"), "numpy"),
        (wrong("eval", "*"), "numpy"),
        (wrong("eval", "Vulkan*"), "CPU"),
        (wrong("grad", "CPU"), "CPU"),
    ],
)
def test_the_cpu_is_no_reference_for_what_it_gets_wrong(case: Case, expected: str) -> None:
    assert reference(case, VULKAN) == expected


def test_a_reference_that_is_asked_for_stays() -> None:
    assert reference(wrong("eval", "CPU"), VULKAN, settings=Settings(reference="CPU")) == "CPU"
    assert reference(RIGHT, VULKAN, settings=Settings(reference="NumPy")) == "numpy"
    # NumPy has no gradients to compare with.
    assert reference(wrong("eval", "CPU"), VULKAN, settings=Settings(backward=True)) == "CPU"


def test_jobs_are_numbered_target_by_target() -> None:
    jobs = plan([RIGHT, wrong("eval", "CPU")], [CPU, VULKAN], "eval", Settings(), 1.0)
    assert [(job.index, job.target, job.settings.reference) for job in jobs] == [
        (0, "CPU", "numpy"),
        (1, "CPU", "numpy"),
        (2, "Vulkan0", "CPU"),
        (3, "Vulkan0", "numpy"),
    ]


def test_large_cases_are_left_out_unless_that_leaves_none() -> None:
    small = make_case("out = silu(a)", a=(100, 100, 1, 1))
    large = make_case("out = silu(a)", a=(101, 100, 1, 1))
    assert of_usual_size([small, large], {}) == [small]
    assert of_usual_size([small, large], {large.id: ("",)}) == [small, large]
    assert of_usual_size([large], {}) == [large]
