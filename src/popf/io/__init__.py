"""Save models to files that are safe to open.

``models``      `save` and `load` (also ``popf.save``, ``popf.load``), `describe`, `align` for frames;
                `trusted_types` for skops
``container``   the file format: a JSON header and arrays, checked before use

Nothing here uses pickle, and no code in a file is run.
"""

from popf.forest.alignment import align
from popf.io.container import ModelFileError
from popf.io.models import describe, load, save
from popf.io.models import trusted_types as trusted_types

__all__ = ["ModelFileError", "align", "describe", "load", "save"]
