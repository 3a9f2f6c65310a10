"""NumPy float64 semantics of the ops: the reference of the CPU device."""

from gradcheck.reference.device import ReferenceDevice

__all__ = ["ReferenceDevice"]
