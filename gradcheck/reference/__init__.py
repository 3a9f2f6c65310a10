"""NumPy float64 semantics of the ops: the reference of the CPU device."""
