"""Logits, whose softmax gives the probabilities, and the base class of classifiers that compute them."""

from __future__ import annotations

from abc import abstractmethod
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray, IntArray
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import Path
from popf.forest.state import InnerForest
from popf.forest.validation import resources_of, set_metric_tags, to_device_of, to_host
from popf.state import Labels, Part, StateMixin

if TYPE_CHECKING:
    from sklearn.utils import Tags


class ForestProbabilities(StateMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of classifiers with a forest, ``opf_``, and a `threshold`."""

    classes_: Annotated[NDArray[Any], Labels()]
    opf_: Annotated[OPFClassifier, Part(InnerForest)]  # set last: see __sklearn_is_fitted__

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict the probability of every class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return to_device_of(X, np.exp(log_softmax(self._logits(X))))

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Predict the log probability of every class, accurate even for probabilities near 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return to_device_of(X, log_softmax(self._logits(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels; of two classes, ``classes_[1]`` if its probability reaches the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        chosen = most_probable(to_host(self.predict_proba(X)), self.threshold)
        return to_device_of(X, self.classes_[chosen])

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the log odds of ``classes_[1]``, or for more than two classes the logits of all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return to_device_of(X, log_odds(self._logits(X)))

    def explain(self, X: ArrayLike) -> list[Path]:
        """Trace the forest's path to each sample, from a prototype to the sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `predict`. Lengths in the paths are those that the forest sees, after squashing and mapping.

        Returns
        -------
        list of Path
        """
        check_is_fitted(self)
        return self.opf_.forest_.explain(self._as_forest_sees(X), resources_of(self))

    @abstractmethod
    def _logits(self, X: ArrayLike) -> FloatArray:
        """Check new samples, and compute the logits of the classes, whose softmax gives the probabilities."""

    @abstractmethod
    def _as_forest_sees(self, X: ArrayLike) -> FloatArray:
        """Check new samples, and prepare them for the forest."""

    def _forget_fit(self) -> None:
        """Delete fitted attributes, so that a failed fit does not leave old ones."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "opf_")

    def __sklearn_tags__(self) -> Tags:
        return set_metric_tags(super().__sklearn_tags__(), self.metric)


def smoothed_targets(
    codes: IntArray, weights: FloatArray, n_classes: int, smoothing: float
) -> FloatArray:
    r"""Compute Platt's targets :math:`(N_k + a) / (N_k + 2a)`; the other classes share the rest equally."""
    own = np.bincount(codes, weights=weights)[codes]
    total, rest = own + 2.0 * smoothing, smoothing / (n_classes - 1)
    targets = np.repeat((rest / total)[:, None], n_classes, axis=1)
    targets[np.arange(len(own)), codes] = (own + smoothing) / total
    return targets


def log_softmax(logits: FloatArray) -> FloatArray:
    """Compute log probabilities, over the last axis."""
    if logits.shape[-1] == 2:
        odds = logits[..., 1] - logits[..., 0]
        return np.stack([-np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)], axis=-1)
    shifted = logits - highest(logits)
    logs: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def highest(logits: FloatArray) -> FloatArray:
    """Return the highest logit of each row, as a column."""
    if logits.shape[-1] > 16:
        return np.asarray(logits.max(axis=-1, keepdims=True))
    # Ten times as fast over a short last axis.
    return np.asarray(reduce(np.maximum, np.moveaxis(logits, -1, 0))[..., None])


def log_odds(logits: FloatArray) -> FloatArray:
    """Return the log odds of the second of two classes, or the logits of more classes."""
    return logits[..., 1] - logits[..., 0] if logits.shape[-1] == 2 else logits


def most_probable(probability: FloatArray, threshold: float) -> IntArray:
    """Return the most probable class; of two, the second if its probability reaches the threshold."""
    if probability.shape[1] == 2:
        return (probability[:, 1] >= threshold).astype(np.int64)
    chosen: IntArray = probability.argmax(axis=1)
    return chosen
