"""Where the work is done: the processor, or a GPU; and arrays that live there."""

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from popf.engine.backends import devices, register
from popf.engine.gpu import cuda_backend

if TYPE_CHECKING:
    from popf.forest.metrics import Metric

register("cuda", cuda_backend)
# With so many features a space tree is always the quickest, as in `popf.engine.training`.
FEW_FEATURES = 4


def is_on_gpu(array: Any) -> bool:
    """Tell whether an array of CuPy or PyTorch lies on a GPU."""
    if type(array).__module__.partition(".")[0] == "torch":  # has the interface on any device
        return str(getattr(array, "device", "")).startswith("cuda")
    return hasattr(type(array), "__cuda_array_interface__")


def to_host(array: Any) -> Any:
    """Bring an array from a GPU to the host; what is not on a GPU stays what it is."""
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


def to_device_of(array: Any, values: NDArray[Any]) -> Any:
    """Move numbers to where `array` is, in the same library; text stays on the host."""
    if not is_on_gpu(array) or values.dtype.kind not in "biuf":
        return values
    if hasattr(array, "get"):
        import cupy

        with cupy.cuda.Device(array.device):
            return cupy.asarray(values)
    import torch

    return torch.as_tensor(values, device=array.device)


def choose_device(device: str | None, X: Any, metric: "Metric", algorithm: str) -> str:
    """Choose where to work: where the user says, else where the samples are.

    Raises ValueError if that device does not serve the metric or the algorithm.
    """
    if device is None:
        serves = metric.euclidean and algorithm in ("auto", "brute")
        return "cuda" if is_on_gpu(X) and serves else "cpu"
    if device not in devices():
        raise ValueError(f"`device` must be None, 'cpu' or 'cuda', not {device!r}.")
    if device != "cpu" and not metric.euclidean:
        raise ValueError(
            f"`device={device!r}` serves Euclidean metrics only, not metric {metric.name!r}: use "
            "`device=None`."
        )
    if device != "cpu" and algorithm not in ("auto", "brute"):
        raise ValueError(
            f"`device={device!r}` works by matrix products, not with `algorithm={algorithm!r}`: use "
            "`algorithm='auto'`, or `device=None`."
        )
    return device


def pays_on_host(device: str, algorithm: str, n_features: int) -> bool:
    """Tell whether a space tree on the processor outruns products on a GPU, as with few features."""
    return device == "cuda" and algorithm == "auto" and n_features <= FEW_FEATURES
