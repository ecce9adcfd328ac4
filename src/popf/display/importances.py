"""Display of what drives a model: the mean absolute contribution of every column to the log odds."""

from collections.abc import Mapping
from typing import Any, Self

from popf.display import canvas
from popf.display.log_odds import split_log_odds

WIDTH, HEIGHT_OF_BAR, AXIS = 6.4, 0.28, 0.8
#: The bar of the forest, which compares all columns together.
FOREST = "similar rows (forest)"


class ImportancesDisplay:
    """Bar chart of the mean absolute contribution of every column, and of the forest, to the log odds.

    Parameters
    ----------
    importances : dict of float
        By column, and for ``"forest"``, largest first, such as from `ProbabilityExplanation.importances`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer
        The bars, from the top.

    See Also
    --------
    LogOddsDisplay : The contributions to the log odds of one sample.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_breast_cancer
    >>> from popf import POPFClassifier
    >>> from popf.display import ImportancesDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = POPFClassifier().fit(X[::2], y[::2])
    >>> display = ImportancesDisplay.from_estimator(
    ...     model, X[1::2], n_features=3, ax=Figure().subplots()
    ... )
    >>> len(display.bars_)
    4
    """

    def __init__(self, *, importances: Mapping[str, float]) -> None:
        self.importances = importances

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_features: int = 15, ax: Any = None
    ) -> Self:
        """Draw what drives a fitted classifier on some samples, best ones that it was not fitted to.

        Parameters
        ----------
        estimator : POPFClassifier or Pipeline
            Fitted. Contributions of columns that a pipeline makes from one column are summed.
        X : array-like or DataFrame of shape (n_samples, n_features)
        n_features : int, default=15
            Number of columns to show.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        """
        canvas.need_matplotlib()
        found = split_log_odds(estimator, X).importances()
        return cls(importances=found).plot(n_features=n_features, ax=ax)

    def plot(self, *, n_features: int = 15, ax: Any = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        n_features, ax
            As for `from_estimator`.
        """
        columns = {name: size for name, size in self.importances.items() if name != "forest"}
        shown = dict(list(columns.items())[:n_features])
        if "forest" in self.importances:
            shown[FOREST] = self.importances["forest"]
        ax = canvas.axes_for(ax, (WIDTH, HEIGHT_OF_BAR * len(shown) + AXIS))
        look = canvas.look_of(ax)
        self.ax_, self.figure_ = ax, ax.figure
        colours = [look.quiet if name == FOREST else look.fill(1) for name in shown]
        self.bars_ = ax.barh(range(len(shown)), list(shown.values()), color=colours, height=0.7)
        ax.set_yticks(range(len(shown)), list(shown))
        ax.invert_yaxis()
        ax.set_xlabel("mean absolute contribution to the log odds")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self
