"""The GPU's algorithm: on the processor everywhere, and on a GPU where there is one."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import naive
from gpus import DEVICES, gpu
from host_kernels import HostKernels
from popf import OPFClassifier, POPFClassifier
from popf.engine.gpu import backend, competing, cuda, host
from popf.engine.soft_scores import CompetingNodes
from popf.engine.structures import LOW_DIMENSION
from popf.forest.validation import backend_for, is_on_gpu
from strategies import (
    Problem,
    assert_same_conquest,
    assert_same_forest,
    clusters,
    fit,
    gaussian,
    grid,
    with_labels,
)


def pairs(n, d):
    """Every point has a near twin and all else is far, so that lists tell little."""
    X, y, queries = gaussian(0, n, d)
    X[1::2] = X[: 2 * (n // 2) : 2] + 1e-9
    return Problem(X, y, queries)


PROBLEMS = {
    "continuous": gaussian(0, 300, 12),
    "ties": grid(0, 300, 5, 4),
    "clusters": clusters(0, 210, 5, 1e-3),
    "pairs": pairs(201, 6),
    "tiny": with_labels(np.random.default_rng(0), 1e-150 * gaussian(0, 150, 20).X),
    "huge": with_labels(np.random.default_rng(0), 1e150 * gaussian(0, 150, 20).X),
}
each_device = pytest.mark.parametrize("device", DEVICES)
each_problem = pytest.mark.parametrize("name", PROBLEMS)


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles so small that there are many of them."""
    monkeypatch.setattr(backend, "ROWS", 50)
    monkeypatch.setattr(backend, "COLUMNS", 64)


@pytest.fixture
def small_filters(small_tiles, monkeypatch):
    """Products that are filtered although there are few of them."""
    monkeypatch.setattr(backend, "FEWEST", 40)
    monkeypatch.setattr(backend, "FIRST", 33)
    monkeypatch.setattr(backend, "FILTERED_ROWS", 300)


def assert_is_the_forest_of_the_processor(problem, device):
    there, here = fit(problem, device=device), fit(problem)
    assert_same_forest(there, here)
    assert_same_conquest(there, here, problem.queries)
    assert (there.device_, there.algorithm_) == (device, "brute")
    far = problem.queries * 2.0**40  # more than half precision holds beside the training samples
    assert_array_equal(there.predict(far), here.predict(far))


@each_device
@each_problem
@pytest.mark.parametrize("share", [0.5, 0.0], ids=["points fit", "block by block"])
@pytest.mark.usefixtures("small_tiles")
def test_the_forest_is_the_same(name, device, share, monkeypatch):
    monkeypatch.setattr(backend, "SHARE", share)
    assert_is_the_forest_of_the_processor(PROBLEMS[name], device)


@each_device
@each_problem
@pytest.mark.parametrize("room", [0, 3, host.ROOM])
@pytest.mark.usefixtures("small_filters")
def test_products_that_are_filtered_give_the_same_forest(device, name, room, monkeypatch):
    # Whatever the room for what passes: rows that are crowded are done again.
    monkeypatch.setattr(host, "ROOM", room)
    monkeypatch.setattr(cuda, "ROOM", room or 1)
    assert_is_the_forest_of_the_processor(PROBLEMS[name], device)


@each_device
@pytest.mark.usefixtures("small_tiles")
def test_too_many_pairs_are_listed_in_parts(device, monkeypatch):
    monkeypatch.setattr(backend, "CAPACITY", backend.COLUMNS)
    # Clusters so tight that products cannot tell their points apart: all pairs between two may be shortest.
    assert_is_the_forest_of_the_processor(clusters(0, 210, 5, 1e-5), device)


@each_device
def test_far_and_extreme_queries(device):
    X, y, _ = gaussian(0, 100, 3)
    new = np.array([[1e300, 0.0, 0.0], [-1e200, 1e200, 3.0], [0.0, 0.0, 0.0], [1e8, 1.0, 1.0]])
    problem = Problem(X, y, new)
    assert_same_conquest(fit(problem, device=device), fit(problem), new)


@each_device
@pytest.mark.parametrize("outlier", [1.0, 1e6])
def test_what_half_precision_leaves_out_is_farther(device, outlier):
    rng = np.random.default_rng(5)
    n, n_rows, step = 9000, 200, 2
    X = rng.normal(size=(n, 70)) + 1.0
    X[-1] *= outlier
    placed = backend_for(device).place(X)
    kernels, rows = placed.kernels, placed.take(slice(n_rows))
    own, floors = kernels.xp.arange(n_rows), kernels.xp.zeros(n, dtype=np.float32)
    kept = backend.no_candidates(kernels.xp, n_rows)
    backend.select_spaced(placed, rows, own, slice(0, n, step), floors, kept)
    halved, crowded = placed.halved(rows), kernels.xp.zeros(n_rows, dtype=bool)
    chunk = placed.spaced_halves(slice(1, n, step))
    kernels.filter(halved, own, chunk, floors[1::step], kept, crowded)
    assert not crowded.any()
    values, indices = (kernels.get(part) for part in kept)
    every = naive.squared_distances(X[:n_rows], X)
    squared = np.take_along_axis(every, indices, axis=1)
    assert (values <= squared).all()
    assert (indices % step == 1).any()
    assert np.median((squared - values) / squared) < 0.01
    near = every < values.max(axis=1)[:, None]
    near[np.arange(n_rows), np.arange(n_rows)] = False
    assert near.sum() > 5 * n_rows
    for row in range(n_rows):
        assert set(np.flatnonzero(near[row])) <= set(indices[row])


@pytest.mark.parametrize("n_rows", [1, 128, 131_072])
@pytest.mark.parametrize("n_columns", [1, 129, 500_000, 40_000_000])
def test_the_blocks_of_a_filter_have_every_tile_and_count_their_columns(n_rows, n_columns):
    n_groups, n_tiles, tiles_each = cuda._shares_of_filter(n_rows, n_columns)
    assert n_groups * 128 >= n_rows
    assert n_tiles * 128 >= n_columns > (n_tiles - 1) * 128
    n_shares = -(-n_tiles // tiles_each)
    assert n_shares <= 65_535  # CUDA's own limit
    assert tiles_each * 128 <= 2**24


@gpu
@pytest.mark.gpu
def test_filtered_products_give_the_lists_of_whole_tiles(monkeypatch):
    X = np.sort(np.random.default_rng(0).normal(size=(140_000, 20)), axis=0)
    device = backend_for("cuda")
    placed = device.place(X / 8.0)
    assert placed.filters
    filtered = device.nearest_neighbours(placed)
    monkeypatch.setattr(backend, "FEWEST", len(X) + 1)
    whole_tiles = device.nearest_neighbours(device.place(X / 8.0))
    for part, whole in zip(filtered, whole_tiles, strict=True):
        assert_allclose(part, whole, rtol=1e-2 if part is filtered.horizon else 0.0)


@each_device
@pytest.mark.parametrize(("n_classes", "d"), [(2, 2), (3, 30)])
def test_probabilities(device, n_classes, d):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 400)
    X = rng.normal(size=(400, d)) + 1.5 * y[:, None]
    new = rng.normal(size=(100, d)) + 1.0
    w = rng.integers(1, 3, 400).astype(float)
    only_forest = {"method": "forest", "linear_map": "none"}  # regressions take no device
    on_device = POPFClassifier(device=device, algorithm="brute", **only_forest)
    on_device.fit(X, y, sample_weight=w)
    here = POPFClassifier(**only_forest).fit(X, y, sample_weight=w)
    assert on_device.device_ == device
    assert_allclose(on_device.predict_proba(new), here.predict_proba(new), atol=1e-8)


@each_device
def test_soft_scores_equal_those_of_the_processor(device, monkeypatch):
    monkeypatch.setattr(competing, "ROWS", 33)
    monkeypatch.setattr(competing, "COLUMNS", 57)
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(300, 7))
    samples[10:20] = samples[:10]  # at no distance, where products cancel
    samples[-1, 3] = 1e20  # must not blur the others
    codes, weights = rng.integers(0, 3, 300), rng.integers(1, 4, 300).astype(float)
    costs, kernels = 0.5 * rng.random(300), backend_for(device)
    nodes, plain = (
        kernels.competing_nodes(samples, codes, costs, weights),
        CompetingNodes.build(codes, costs, weights),
    )
    D = np.sqrt(naive.squared_distances(samples[:100], samples[plain.order]))
    for taus in (5.6 * 0.5 ** np.arange(9), np.array([0.3])):
        mine = kernels.soft_scores(nodes, samples[:100], taus)
        expected = plain.scores(lambda start, stop: D[start:stop], 100, taus, 7, 1)
        assert_allclose(mine, expected, rtol=1e-8, atol=1e-8)


@each_device
def test_a_model_goes_on_without_the_device(device):
    X, y = gaussian(0, 120, 8)[:2]
    for model in (OPFClassifier(device=device), POPFClassifier("forest", device=device)):
        model.fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict(X), model.predict(X))


def test_few_features_are_left_to_the_space_tree(monkeypatch):
    # A GPU is asked for, and must be there, but need not work.
    monkeypatch.setattr(cuda, "cuda_kernels", HostKernels)
    X, y = gaussian(0, 60, LOW_DIMENSION)[:2]
    for model in (OPFClassifier(device="cuda"), POPFClassifier("forest", device="cuda")):
        assert model.fit(X, y).device_ == "cpu"
        assert model.set_params(algorithm="brute").fit(X, y).device_ == "cuda"


class OnTheGpu:
    """An array as of CuPy, whose numbers NumPy cannot read before `get` copies them."""

    __cuda_array_interface__ = None

    def __init__(self, values):
        self._values, self.shape, self.dtype = values, values.shape, values.dtype

    def __len__(self):
        return len(self._values)

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def get(self):
        return self._values


@pytest.mark.parametrize(
    "model",
    [
        OPFClassifier(),
        POPFClassifier("forest"),
        POPFClassifier(),
        POPFClassifier(categorical_features=[0]),
    ],
)
def test_without_a_device_the_forest_is_grown_where_the_samples_are(model, monkeypatch):
    monkeypatch.setattr(cuda, "cuda_kernels", HostKernels)
    X, y = gaussian(0, 120, 10)[:2]
    assert model.fit(OnTheGpu(X), y).device_ == "cuda"
    expected = model.predict(X)
    assert model.fit(X, y).device_ == "cpu"
    assert_array_equal(model.predict(X), expected)


@gpu
@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_on_the_gpu_stay_there(library):
    X, y = gaussian(0, 200, 10)[:2]
    module = pytest.importorskip(library)
    there = module.asarray(X)
    there = there.cuda() if library == "torch" else there
    labels = module.asarray(y)
    assert is_on_gpu(there)
    for model, plain in (
        (OPFClassifier(), OPFClassifier(device="cpu")),
        (POPFClassifier(), POPFClassifier(device="cuda")),
    ):
        model.fit(there, labels)
        plain.fit(X, y)
        assert model.device_ == "cuda"
        predicted = model.predict(there)
        assert type(predicted) is type(there)
        assert is_on_gpu(predicted)
        assert_array_equal(
            predicted.get() if library == "cupy" else predicted.cpu(), plain.predict(X)
        )
    assert is_on_gpu(model.predict_proba(there))


@pytest.mark.parametrize("estimator", [OPFClassifier, POPFClassifier])
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"device": "gpu"}, "'gpu'"),
        ({"device": "cuda", "metric": "manhattan"}, "manhattan"),
        ({"device": "cuda", "algorithm": "kd_tree"}, "kd_tree"),
    ],
)
def test_what_a_device_cannot_do_is_said(estimator, parameters, said):
    X, y = gaussian(0, 20, 2)[:2]
    with pytest.raises(ValueError, match=said):
        estimator(**parameters).fit(X, y)


def broken(n_devices):
    """CuPy on a machine where something is wrong."""

    def count():
        if isinstance(n_devices, Exception):
            raise n_devices
        return n_devices

    def raw_module(**_):
        raise RuntimeError("NVRTC is not there")

    runtime = SimpleNamespace(getDeviceCount=count, runtimeGetVersion=lambda: 12040)
    machine = SimpleNamespace(runtime=runtime)
    return SimpleNamespace(cuda=machine, RawModule=raw_module, __version__="13.0")


@pytest.mark.parametrize(
    ("cupy", "said"),
    [
        (None, "popf\\[cuda\\]"),
        (broken(RuntimeError("driver too old")), "driver too old.*CUDA 12"),
        (broken(0), "there is no GPU"),
        (broken(1), "NVRTC is not there.*CuPy wheel"),
    ],
    ids=["no CuPy", "old driver", "no GPU", "no compiler"],
)
def test_a_machine_without_a_working_gpu_is_told_what_is_wrong(cupy, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    X, y = gaussian(0, 20, 2)[:2]
    cuda.cuda_kernels.cache_clear()
    with pytest.raises(cuda.DeviceError, match=said):
        OPFClassifier(device="cuda").fit(X, y)
    cuda.cuda_kernels.cache_clear()


def test_a_tensor_on_a_device_that_is_not_ours():
    class Tensor:
        __module__ = "torch"
        device = "mps:0"

    with pytest.raises(ValueError, match=r"mps:0.*tensor\.cpu"):
        OPFClassifier().fit(Tensor(), [0, 1])
