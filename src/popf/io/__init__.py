"""Models in files that are safe to share.

`save` and `load` (also ``popf.save`` and ``popf.load``), `describe` for what is in a file, `align` for frames
whose columns come in another order, `trusted_types` for skops. What each module holds:

``models``      save, load, describe
``columns``     columns by name
``estimators``  the estimators that a file may hold
``codec``       plain values as JSON and arrays
``container``   the file: a JSON header and arrays, checked before use

Nothing here uses pickle, and nothing in a file is run.
"""

from popf.io.columns import align
from popf.io.container import ModelFileError
from popf.io.estimators import trusted_types as trusted_types
from popf.io.models import describe, load, save

__all__ = ["ModelFileError", "align", "describe", "load", "save"]
