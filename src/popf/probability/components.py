"""What a component of the pool is.

A component on features learns logits from the scaled samples of one fold, for complexities from simple to
complex. It knows neither how folds are made nor the other components; the forest is a component with scores of
its own, see `forest_component`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from popf.engine.structures import FloatArray, IntArray
from popf.probability.folds import stratified_subsample


class Fold(NamedTuple):
    """Scaled samples to which components are fitted; some of the classes may have none."""

    samples: FloatArray
    codes: IntArray
    weights: FloatArray
    n_classes: int
    n_samples: int  # all samples, of which these may be a part

    def subsample(self, size: int) -> "Fold":
        """Keep about `size` of the samples."""
        some = stratified_subsample(self.codes, size)
        return self._replace(
            samples=self.samples[some], codes=self.codes[some], weights=self.weights[some]
        )


class Split(NamedTuple):
    """A fold, and the scaled samples that are held out of it."""

    fold: Fold
    queries: FloatArray
    given: tuple[FloatArray, FloatArray] | None = None  # both as given, for a forest on them


class FittedComponent(Protocol):
    """Logits of the classes as a sum over features."""

    @property
    def intercepts(self) -> FloatArray:
        """The constants: (n_classes,)."""

    def logits(self, samples: FloatArray) -> FloatArray:
        """Compute the logits of scaled samples: (n_samples, n_classes)."""

    def contributions(self, samples: FloatArray) -> FloatArray:
        """Split logits minus intercepts by feature: (n_samples, n_features, n_classes).

        Contributions are 0 on average over the training samples.
        """


class Component(Protocol):
    """A way to learn logits from features."""

    #: Complexities to try, on one or several paths, each from simple to complex.
    paths: Sequence[Sequence[Any]]

    def fit(self, fold: Fold, complexity: Any) -> FittedComponent:
        """Fit one complexity."""

    def score_path(
        self, fold: Fold, queries: FloatArray, path: Sequence[Any]
    ) -> Iterator[FloatArray]:
        """Compute the logits of queries by one complexity after the other.

        Later ones start from earlier ones, which saves time. There are fewer if the samples do not allow all.
        """
