"""Models in files that are safe to share.

`save` and `load` (also ``popf.save`` and ``popf.load``), `describe` for what is in a file, `align` for frames
whose columns come in another order. What each module holds:

``models``     save, load, describe
``columns``    columns by name
``steps``      the estimators that a model may be made of
``forests``    what a forest and its probabilities are rebuilt from
``codec``      plain values as JSON and arrays
``container``  the file: a JSON header and arrays, checked before use
``atomic``     files that are whole or not there

Nothing here uses pickle, and nothing in a file is run.
"""

from popf.io.columns import align
from popf.io.container import ModelFileError
from popf.io.models import describe, load, save

__all__ = ["ModelFileError", "align", "describe", "load", "save"]
