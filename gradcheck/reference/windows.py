"""Where the windows of a kernel lie in a volume: what convolutions and pooling read, and their adjoints write to."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gradcheck.reference.dtypes import Array
from gradcheck.reference.tensor import demand

#: Depth, height, width: NumPy's order. An image has depth 1, a signal height 1 as well.
Triple = tuple[int, int, int]
Slices = tuple[slice, slice, slice]
_ONES = (1, 1, 1)


@dataclass(frozen=True)
class Windows:
    """Windows on volumes [n, channels, depth, height, width] with zeros around them, `pad` on both sides of an axis.

    Window i begins at stride i - pad, and its elements are `dilation` apart.
    """

    volume: Triple
    kernel: Triple
    stride: Triple = _ONES
    pad: Triple = (0, 0, 0)
    dilation: Triple = _ONES

    @functools.cached_property
    def counts(self) -> Triple:
        """How many windows there are: (size + 2 pad - dilation (kernel - 1) - 1) / stride + 1, rounded towards 0.

        So says ggml: a single window may stick out of the padded volume by less than a stride.
        """
        found = []
        for axis in range(3):
            room = self.volume[axis] + 2 * self.pad[axis] - self._reach(axis)
            demand(self.stride[axis] > 0 and self.dilation[axis] > 0, "a stride and a dilation are above 0")
            found.append((room // self.stride[axis] if room >= 0 else -(-room // self.stride[axis])) + 1)
        return (found[0], found[1], found[2])

    def padded(self, x: Array) -> Array:
        """The volumes with zeros around them, as far as windows reach."""
        return np.pad(x, [(0, 0), (0, 0), *((self.pad[axis], self._behind(axis)) for axis in range(3))])

    def room(self, n: int, channels: int) -> Array:
        """Padded volumes of zeros, for adjoints to add to; `inside` is what counts of them."""
        sizes = (self.pad[axis] + self.volume[axis] + self._behind(axis) for axis in range(3))
        return np.zeros((n, channels, *sizes))

    def inside(self, padded: Array) -> Array:
        """The volumes without what is around them."""
        depth, height, width = (slice(p, p + size) for p, size in zip(self.pad, self.volume, strict=True))
        return padded[:, :, depth, height, width]

    def columns(self, x: Array) -> Array:
        """The windows as a view of a padded copy: [n, counts..., channels, kernel...]."""
        padded = self.padded(x)
        n, channel, *axes = padded.strides
        moves = (step * stride for step, stride in zip(axes, self.stride, strict=True))
        within = (step * dilation for step, dilation in zip(axes, self.dilation, strict=True))
        shape = (x.shape[0], *self.counts, x.shape[1], *self.kernel)
        return as_strided(padded, shape, (n, *moves, channel, *within), writeable=False)

    def taps(self) -> Iterator[tuple[Triple, Slices]]:
        """Every element of the kernel, with the elements of a padded volume that it meets in all the windows."""
        for tap in np.ndindex(*self.kernel):
            depth, height, width = (self._met(axis, tap[axis]) for axis in range(3))
            yield (tap[0], tap[1], tap[2]), (depth, height, width)

    def _met(self, axis: int, tap: int) -> slice:
        first = tap * self.dilation[axis]
        return slice(first, first + (self.counts[axis] - 1) * self.stride[axis] + 1, self.stride[axis])

    def _reach(self, axis: int) -> int:
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1

    def _behind(self, axis: int) -> int:
        """The padding behind, or more where the last window needs it."""
        needed = (self.counts[axis] - 1) * self.stride[axis] + self._reach(axis)
        return max(self.pad[axis], needed - self.pad[axis] - self.volume[axis])
