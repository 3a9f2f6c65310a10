"""What computing must not do, whatever comes out; every mode that computes asks for it."""

from gradcheck.modes.bench import Program


def misbehaviour(program: Program) -> list[str]:
    """Writes outside of tensors and inputs that changed since the last `load`, a sentence each."""
    return [
        *(f"something wrote behind the end of {name}" for name in program.overwrites()),
        *(f"the input {name} was changed" for name in program.changed_inputs()),
    ]
