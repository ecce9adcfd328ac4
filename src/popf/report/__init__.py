"""One page that answers what people ask of a model: how good, which threshold, who, and what is it.

``assembly``  a model and samples to a page: `build`, `write`
``numbers``   every figure, computed
``paths``     paths in the user's own features
``facts``     what the model is
``contents``  all of it together, and the sentences
``charts``    SVG
``page``      HTML, with ``report.css`` and ``report.js`` put into it
``words``     numbers and the user's words as text that is safe to show
"""

from popf.report.assembly import Options, build, write

__all__ = ["Options", "build", "write"]
