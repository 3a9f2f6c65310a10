"""A bench of known faults: small mutations of ggml, and which tool sees each."""
