"""The only home of ctypes and of ggml: what can be driven, behind Device, Program and Batch."""

from gradcheck.bindings.devices import Device, open_device
from gradcheck.bindings.library import Library, library_info, load

__all__ = ["Device", "Library", "library_info", "load", "open_device"]
