"""Verify and measure the ops of ggml on every backend of a machine."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("gradcheck")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
