"""Store models in MLflow: as `.popf` files, without pickle, so that they load under its strict mode.

``save_model`` writes a model to a folder, ``log_model`` to a run, and ``load_model`` loads it again.
``mlflow.pyfunc.load_model`` and ``mlflow models serve`` load it as a function from rows to probabilities.
"""

import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from popf.formatting import import_extra
from popf.io import align, load, save

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR, FILE = "popf", "model.popf"


def save_model(
    model: Any,
    path: Any,
    *,
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    **options: Any,
) -> None:
    """Save a fitted model to a folder in MLflow's format.

    Parameters
    ----------
    model : estimator of popf, or Pipeline
        A model that `popf.save` can save.
    path : str or path-like
        A folder that does not exist yet, or is empty.
    mlflow_model : mlflow.models.Model, default=None
        What the folder describes; `log_model` gives it.
    signature : mlflow.models.ModelSignature, default=None
        The columns that the model takes and returns; by default inferred from `input_example`.
    input_example : DataFrame or array, default=None
        A few rows of X, which are stored with the model. Give integers as floats if they may be missing in a
        request.
    pip_requirements : list of str or path, default=None
        By default this version of popf, and those of scikit-learn, NumPy and pandas.
    **options
        Passed to ``mlflow.pyfunc.save_model``, such as ``metadata`` or ``code_paths``.

    Examples
    --------
    >>> import os, tempfile
    >>> import popf, popf.mlflow
    >>> model = popf.POPFClassifier("forest").fit([[0.0], [1.0], [4.0], [5.0]] * 5, ["a", "a", "b", "b"] * 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model")
    ...     popf.mlflow.save_model(model, path)
    ...     same = popf.mlflow.load_model(path)
    >>> same.predict([[3.9]])
    array(['b'], dtype='<U1')
    """
    mlflow = _mlflow()
    if signature is None and input_example is not None:
        answer = _Rows(model).predict(input_example)
        signature = mlflow.models.infer_signature(input_example, answer)
    mlflow_model = mlflow_model or mlflow.models.Model()
    mlflow_model.add_flavor(FLAVOR, popf_version=version("popf"), data=f"data/{FILE}")
    if pip_requirements is None:
        names = ("popf", "scikit-learn", "numpy", "pandas")
        pip_requirements = [f"{name}=={version(name)}" for name in names]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / FILE
        save(model, file, X=input_example)
        mlflow.pyfunc.save_model(
            str(path),
            loader_module=__name__,
            data_path=str(file),
            mlflow_model=mlflow_model,
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements,
            **options,
        )


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Log a fitted model to the active run of MLflow, or to a new one.

    Parameters
    ----------
    model : estimator of popf, or Pipeline
    name : str
        The name of the model in MLflow.
    **options
        Those of `save_model`, and those of ``mlflow.models.Model.log``, such as ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what `load_model` takes.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow, popf, popf.mlflow
    >>> model = popf.OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    ...     experiment = mlflow.create_experiment("doctest", f"file://{folder}/files")
    ...     with mlflow.start_run(experiment_id=experiment):
    ...         logged = popf.mlflow.log_model(model, "forest")
    ...     same = popf.mlflow.load_model(logged.model_uri)
    >>> same.predict([[3.0]])
    array(['b'], dtype='<U1')
    """
    this = import_module(__name__)
    return _mlflow().models.Model.log(None, flavor=this, name=name, model=model, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Load a model that `save_model` or `log_model` stored.

    Parameters
    ----------
    model_uri : str
        A folder, or an address such as ``models:/thefts/3`` or ``runs:/<id>/forest``.
    dst_path : str, default=None
        The folder to download it to; a temporary one by default.

    Returns
    -------
    The model, or the Pipeline, as `popf.load` returns it.
    """
    mlflow = _mlflow()
    folder = mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri), dst_path=dst_path)
    known = mlflow.models.Model.load(folder).flavors
    if FLAVOR not in known:
        raise ValueError(f"{model_uri} is no model of popf; it has the flavors {sorted(known)}.")
    return load(Path(folder) / known[FLAVOR]["data"])


def _load_pyfunc(path: str) -> "_Rows":
    """Load a model as ``mlflow.pyfunc`` wants it."""
    return _Rows(load(path))


class _Rows:
    """A model as a function of a frame: the columns of ``popf predict``, probabilities and label."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any, params: Any = None) -> Any:
        """Return a column ``probability_...`` for each class, if there are probabilities, and ``predicted``."""
        import pandas

        X = align(self.model, X, extra="ignore")
        columns = {}
        if hasattr(self.model, "predict_proba"):
            found = self.model.predict_proba(X).T
            named = zip(self.model.classes_.tolist(), found, strict=True)
            columns = {f"probability_{label}": share for label, share in named}
        columns["predicted"] = self.model.predict(X)
        return pandas.DataFrame(columns, index=getattr(X, "index", None))


def _mlflow() -> Any:
    return import_extra("mlflow", "mlflow", "popf.mlflow")
