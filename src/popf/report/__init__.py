"""One page that answers what people ask of a model: how good, which threshold, who, and what is it.

``page``        from a model and samples to the page: `build`, `write`
``numbers``     every figure
``paths``       paths to the listed samples, in the user's own features
``facts``       what the model is
``sentences``   figures in words
``formatting``  numbers, names and lines as text
``templates``   the page: HTML, style and script
"""

from popf.report.page import build, write

__all__ = ["build", "write"]
