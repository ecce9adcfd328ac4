"""A report on a model as one HTML page: how good it is, which threshold to use, its highest probabilities.

``page``          build the page from a model and samples: `build`, `write`
``numbers``       compute and format all numbers
``drivers``       what drives the model: contributions of columns, dependence, cautions
``explanations``  describe the model, and explain the probabilities of samples by log odds and paths
``templates``     the page: HTML, style and script
"""

from popf.report.page import build, write

__all__ = ["build", "write"]
