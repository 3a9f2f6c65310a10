"""NumPy only: sampling, differentiation, metrics and timing statistics. Arrays in, numbers out."""
