"""Where the work is done: the processor, or a GPU; and arrays that live there."""

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from popf.engine.backends import devices, register
from popf.engine.gpu import cuda_backend

if TYPE_CHECKING:
    from popf.forest.metrics import Metric

register("cuda", cuda_backend)
# With so many features a space tree is always the quickest, as in `popf.engine.choice`.
FEW_FEATURES = 4


def is_on_gpu(array: Any) -> bool:
    """Tell whether an array of CuPy or PyTorch lies on a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.forest.devices import is_on_gpu
    >>> is_on_gpu(np.zeros(3))
    False
    """
    if type(array).__module__.partition(".")[0] == "torch":  # has the interface on any device
        return str(getattr(array, "device", "")).startswith("cuda")
    return hasattr(type(array), "__cuda_array_interface__")


def to_host(array: Any) -> Any:
    """Bring an array from a GPU to the host; what is not on a GPU stays what it is.

    Examples
    --------
    >>> from popf.forest.devices import to_host
    >>> to_host([1, 2])
    [1, 2]
    """
    if not is_on_gpu(array):
        where = getattr(array, "device", None)
        if type(array).__module__.partition(".")[0] == "torch" and str(where) != "cpu":
            raise ValueError(
                f"a tensor lies on the device {str(where)!r}, but popf works on the processor and on CUDA: "
                "give tensor.cpu()."
            )
        return array
    if hasattr(array, "get"):  # CuPy
        return array.get()
    return array.detach().cpu().numpy()


def like(answer: NDArray[Any], array: Any) -> Any:
    """Put an answer where the question came from, in the same library; words stay on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.forest.devices import like
    >>> like(np.array([1, 2]), [[0.0], [1.0]])
    array([1, 2])
    """
    if not is_on_gpu(array) or answer.dtype.kind not in "biuf":
        return answer
    if hasattr(array, "get"):
        import cupy

        with cupy.cuda.Device(array.device):
            return cupy.asarray(answer)
    import torch

    return torch.as_tensor(answer, device=array.device)


def check_device(device: str | None) -> None:
    """Raise an error unless `device` is None or the name of one."""
    if device is not None and device not in devices():
        raise ValueError(f"device must be None, 'cpu' or 'cuda', not {device!r}.")


def device_for(device: str | None, X: Any, metric: "Metric", algorithm: str) -> str:
    """Choose where to work: where it is said, else where the samples are.

    Parameters
    ----------
    device : str or None
    X : array-like
        The training samples as they were given.
    metric : Metric
    algorithm : str

    Returns
    -------
    {"cpu", "cuda"}

    Raises
    ------
    ValueError
        If that device does not serve the metric or the algorithm.
    """
    check_device(device)
    if device is None:
        serves = metric.euclidean and algorithm in ("auto", "brute")
        return "cuda" if is_on_gpu(X) and serves else "cpu"
    if device != "cpu" and not metric.euclidean:
        raise ValueError(
            f"device={device!r} serves Euclidean metrics only, not metric={metric.name!r}: use "
            "device=None."
        )
    if device != "cpu" and algorithm not in ("auto", "brute"):
        raise ValueError(
            f"device={device!r} works by matrix products, not with algorithm={algorithm!r}: use "
            "algorithm='auto', or device=None."
        )
    return device


def pays_on_host(device: str, algorithm: str, n_features: int) -> bool:
    """Tell whether a space tree on the processor outruns products on a GPU, as with few features.

    Examples
    --------
    >>> from popf.forest.devices import pays_on_host
    >>> pays_on_host("cuda", "auto", 2), pays_on_host("cuda", "brute", 2), pays_on_host("cuda", "auto", 8)
    (True, False, False)
    """
    return device == "cuda" and algorithm == "auto" and n_features <= FEW_FEATURES
