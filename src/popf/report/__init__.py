"""One page that answers what people ask of a model: how good, which threshold, who, and what is it.

``page``       from a model and samples to the page: `build`, `write`
``numbers``    every figure
``samples``    why the listed samples have their probabilities: log odds and paths
``wording``    figures, and what the model is, as text
``templates``  the page: HTML, style and script
"""

from popf.report.page import build, write

__all__ = ["build", "write"]
