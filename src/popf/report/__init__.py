"""One page that answers what people ask of a model: how good, which threshold, who, and what is it.

``page``          from a model and samples to the page: `build`, `write`
``numbers``       all numbers, computed and written as text
``explanations``  what the model is, and why samples have their probabilities: log odds and paths
``templates``     the page: HTML, style and script
"""

from popf.report.page import build, write

__all__ = ["build", "write"]
