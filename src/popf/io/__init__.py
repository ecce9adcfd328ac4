"""Models in files that are safe to share.

``models``      `save` and `load` (also ``popf.save``, ``popf.load``), `describe`, `align` for frames;
                `trusted_types` for skops
``container``   the file: a JSON header and arrays, checked before use

Nothing here uses pickle, and nothing in a file is run.
"""

from popf.io.container import ModelFileError
from popf.io.models import align, describe, load, save
from popf.io.models import trusted_types as trusted_types

__all__ = ["ModelFileError", "align", "describe", "load", "save"]
