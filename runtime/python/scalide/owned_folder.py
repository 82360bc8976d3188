"""OwnedFolder: a temporary folder that its owners keep."""
import shutil
import tempfile
import weakref


class OwnedFolder:
    """A folder that is removed with its last owner, or when Python ends. tempfile.TemporaryDirectory would warn that it was not removed."""

    def __init__(self):
        self.name = tempfile.mkdtemp(prefix="scalide-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)
