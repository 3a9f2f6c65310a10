"""Verify and measure the ops of ggml on every backend of a machine."""

__version__ = "0.1.0"
