"""The exceptions that cross a package border; each one's text is fit to be shown to a user."""

from gradcheck.model.place import Place


class GradcheckError(Exception):
    """Something the user can mend; the text names the place and the way out."""


class UsageError(GradcheckError):
    """Wrong arguments: an unknown op, target, mode, limit or file."""


class CaseFileError(GradcheckError):
    """A case file that cannot be read or makes no sense, with its place."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place


class InvalidCase(GradcheckError):
    """A case that no ggml graph can be built from: the fault is in the case, not in the target."""


class LibraryError(GradcheckError):
    """ggml cannot be loaded or does not do what a library must do to be driven."""


class Unsupported(GradcheckError):
    """The target, or ggml itself, does not take this case; the text is ggml's own reason."""


class Aborted(GradcheckError):
    """ggml aborted where it should have refused or worked, in a place from which this process could be kept."""


class NoRoom(GradcheckError):
    """The case needs more memory than there is: it was not begun."""


class OutOfMemory(GradcheckError):
    """An allocation failed that should have been possible."""
