"""Forests from blocks are those of one machine, to the bit, whatever happens to the workers."""

import contextlib
import gc
import os
import pickle
import signal
import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

import naive
from popf import OPFClassifier, POPFClassifier
from popf.dask import DaskOPFClassifier, DaskPOPFClassifier, cluster, dealing, probability
from popf.dask.growing import grow
from popf.dask.model import Costed
from popf.dask.scoring import Asked
from popf.dask.sources import Rows, Source
from popf.engine.blocks import Means
from popf.engine.nearby import Block
from popf.engine.points import scale_exponent, scaled_copy
from popf.metric_choice import choose_metric

SEED = 20240615
FOREST = ("prototypes_", "costs_", "predecessors_", "roots_")


@pytest.fixture(scope="module")
def client():
    """Two workers in this process; not the default client, so nobody takes it by accident."""
    with Client(
        processes=False,
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        set_as_default=False,
        silence_logs=50,
    ) as connected:
        yield connected


class Here:
    """Tasks that are done at once, in this process, and remembered."""

    local = False

    def __init__(self):
        self.done = []

    def submit(self, name, function, *arguments):
        self.done.append((name, arguments))
        return function(*arguments)

    def submit_lazy(self, name, function, *arguments):
        return self.submit(name, function, *dask.compute(*arguments, scheduler="sync"))

    def gather(self, results):
        return results


def two_classes(n, d, rng):
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.6 * rng.normal(size=n) > 0).astype(int)


def samples(kind, n, rng):
    """Data without ties, and with very many."""
    if kind == "normal":
        X = rng.normal(size=(n, 3))
    elif kind == "grid":
        X = rng.integers(0, 9, size=(n, 2)).astype(float)
    elif kind == "coarse":
        X = rng.integers(0, 3, size=(n, 3)).astype(float)
    elif kind == "one-hot":  # all distinct samples equally far from each other
        X = np.eye(7)[rng.integers(0, 7, size=n)]
    elif kind == "clusters":
        X = np.round(rng.normal(size=(n, 2)), 1) + 40.0 * rng.integers(0, 3, size=(n, 1))
    else:
        X = np.full((n, 2), 1.5)
    y = rng.integers(0, 3, size=n)
    y[:3] = 0, 1, 2
    return X, y


KINDS = ["normal", "grid", "coarse", "one-hot", "clusters", "one place"]


def in_blocks(X, y, members):
    """Make blocks of the given samples, as `deal_blocks` does."""
    exponent = scale_exponent(X)
    scaled = scaled_copy(X, exponent)
    blocks = [
        Block(np.sort(m), scaled[np.sort(m)], y[np.sort(m)], np.ones(len(m))) for m in members
    ]
    lows = np.array([block.points.min(axis=0) for block in blocks])
    highs = np.array([block.points.max(axis=0) for block in blocks])
    sizes = np.array([len(m) for m in members])
    return dealing.Blocks(blocks, sizes, lows, highs, np.unique(y), np.arange(len(X)), exponent)


def assert_same_tree(trained, plain, exponent):
    tree, expected = trained.tree.in_order(), plain.spanning_tree_
    np.testing.assert_array_equal(tree.lower, expected.lower)
    np.testing.assert_array_equal(tree.higher, expected.higher)
    np.testing.assert_array_equal(plain._metric.transform(tree.weights, exponent), expected.weights)
    np.testing.assert_array_equal(np.flatnonzero(trained.prototypes), plain.prototypes_)
    costs = plain._metric.transform(trained.forest.costs, exponent)
    np.testing.assert_array_equal(costs, plain.costs_)
    np.testing.assert_array_equal(trained.forest.predecessors, plain.predecessors_)
    np.testing.assert_array_equal(trained.forest.roots, plain.roots_)


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "prim"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_blocks", [2, 4, 9])
def test_the_forest_of_blocks_is_that_of_one_machine(kind, n_blocks, algorithm):
    rng = np.random.default_rng([SEED, n_blocks, KINDS.index(kind)])
    for by_place in (False, True):
        X, y = samples(kind, int(rng.integers(30, 120)), rng)
        rows = np.argsort(X[:, 0], kind="stable") if by_place else rng.permutation(len(X))
        blocks = in_blocks(X, y, np.array_split(rows, n_blocks))
        found = grow(Here(), blocks, Means(algorithm, 1, 2**24), euclidean=True)
        assert_same_tree(found.trained, OPFClassifier().fit(X, y), blocks.exponent)


@pytest.mark.parametrize("kind", KINDS)
def test_prototypes_of_blocks_are_those_of_the_definition(kind):
    rng = np.random.default_rng([SEED, KINDS.index(kind)])
    X, y = samples(kind, 40, rng)
    blocks = in_blocks(X, y, np.array_split(rng.permutation(40), 5))
    found = grow(Here(), blocks, Means("auto", 1, 2**24), euclidean=True).trained
    expected = naive.prototypes(naive.squared_distances(X, X), y)
    np.testing.assert_array_equal(found.prototypes, expected)


@pytest.mark.parametrize("metric", ["manhattan", "chi_square"])
def test_blocks_serve_metrics_that_know_no_boxes(metric):
    rng = np.random.default_rng(SEED)
    X = rng.integers(1, 6, size=(60, 2)).astype(float)
    y = rng.integers(0, 2, size=60)
    plain = OPFClassifier(metric).fit(X, y)
    blocks = in_blocks(X, y, np.array_split(rng.permutation(60), 4))
    chosen = choose_metric(metric, None)
    blocks = blocks._replace(
        exponent=0, blocks=[b._replace(points=X[b.samples]) for b in blocks.blocks]
    )
    found = grow(Here(), blocks, Means("auto", 1, 2**24, chosen.rows), euclidean=False)
    assert_same_tree(found.trained, plain, 0)


def test_ties_cost_nothing_where_there_are_none():
    rng = np.random.default_rng(SEED)
    X, y = samples("normal", 300, rng)
    tasks = Here()
    grow(
        tasks,
        in_blocks(X, y, np.array_split(rng.permutation(300), 5)),
        Means("auto", 1, 2**24),
        True,
    )
    names = [name for name, _ in tasks.done]
    assert "settle-ties" not in names
    assert names.count("tree-of-two-blocks") == 10


def test_pairs_of_blocks_that_are_far_apart_are_not_looked_at():
    rng = np.random.default_rng(SEED)
    X = rng.uniform(size=(4000, 2)) * [100.0, 1.0]
    y = rng.integers(0, 2, size=4000)
    members = np.array_split(np.argsort(X[:, 0]), 10)
    tasks = Here()
    found = grow(tasks, in_blocks(X, y, members), Means("auto", 1, 2**24), True)
    assert found.n_pairs == 9  # each with the next
    assert_same_tree(found.trained, OPFClassifier().fit(X, y), scale_exponent(X))


def rows_held(argument):
    """How many samples an argument of a task brings along."""
    if isinstance(argument, Costed):
        return rows_held(argument.block)
    return len(argument.samples) if isinstance(argument, Block | Asked) else 0


def test_no_task_gets_more_than_two_blocks(monkeypatch):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(600, 2, rng)
    X = np.round(X, 1)  # with ties, so that these are settled, too
    tasks = Here()
    monkeypatch.setattr(probability, "tasks_on", lambda client: contextlib.nullcontext(tasks))
    model = DaskPOPFClassifier().fit(*as_dask(X, y, 100))
    largest = np.bincount(model._block_of).max()
    assert model.n_blocks_ >= 6
    assert largest <= 150
    names = {name for name, _ in tasks.done}
    assert {"tree-of-two-blocks", "settle-ties", "gather-block", "left-out-scores"} <= names
    for name, arguments in tasks.done:
        assert sum(map(rows_held, arguments)) <= 2 * largest, name


def as_dask(X, y, rows=50):
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)


def assert_same_forest(model, plain):
    for name in FOREST:
        np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))
    for got, expected in zip(model.spanning_tree_, plain.spanning_tree_, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert model.classes_.tolist() == plain.classes_.tolist()


@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_the_cluster_gives_the_plain_forest_and_predictions(client, kind):
    rng = np.random.default_rng(SEED)
    X, y = samples(kind, 400, rng)
    new, _ = samples(kind, 90, rng)
    plain = OPFClassifier().fit(X, y)
    model = DaskOPFClassifier(client).fit(*as_dask(X, y))
    assert_same_forest(model, plain)
    assert model.n_blocks_ == 8
    lazy = da.from_array(new, chunks=(40, new.shape[1]))
    for method in ("predict", "decision_function"):
        expected = getattr(plain, method)(new)
        got = getattr(model, method)(lazy)
        assert isinstance(got, da.Array)
        assert got.chunks[0] == lazy.chunks[0]
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.compute(scheduler=client), expected)
        np.testing.assert_array_equal(getattr(model, method)(new), expected)
        np.testing.assert_array_equal(getattr(model.to_local(), method)(new), expected)
    assert model.to_local().explain(new[:3])[0].cost == plain.explain(new[:3])[0].cost


@pytest.mark.parametrize("kind", ["normal", "coarse"])
def test_a_large_model_meets_partitions_block_by_block(client, kind):
    rng = np.random.default_rng(SEED)
    X, y = samples(kind, 300, rng)
    new = np.concatenate([samples(kind, 60, rng)[0], np.full((1, 3), 1e200)])
    plain = OPFClassifier().fit(X, y)
    small = 300 * 3 * 8 / 2**20  # MiB: a quarter of it is less than the model
    model = DaskOPFClassifier(client, working_memory=small).fit(*as_dask(X, y))
    assert len(model._parts()) == model.n_blocks_ >= 6
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    np.testing.assert_array_equal(model.decision_function(new), plain.decision_function(new))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"tolerance": 0.0, "n_left_out": 60},
        {"metric": "manhattan"},
        {"metric": "log_euclidean"},
        {"n_left_out": None},
        {"method": "paper", "box": ((-100.0, 100.0), (-100.0, 100.0))},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_one_machine(client, params, n_classes):
    if n_classes == 3 and params.get("method") == "paper":
        pytest.skip("the paper's method knows two classes")
    rng = np.random.default_rng(SEED)
    X, y = two_classes(360, 3, rng)
    if n_classes == 3:
        y = y + (X[:, 1] > 0.5)
    new = rng.normal(size=(70, 3))
    weight = rng.integers(0, 4, size=360).astype(float)
    plain = POPFClassifier(random_state=3, **params).fit(X, y, weight)
    model = DaskPOPFClassifier(client, random_state=3, **params)
    model.fit(*as_dask(X, y, 90), da.from_array(weight, chunks=100))
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        expected = getattr(plain, method)(new)
        for got in (getattr(model, method)(new), getattr(model.to_local(), method)(new)):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    for name in ("A_", "B_", "slope_", "bandwidth_", "prior_weight_"):
        assert hasattr(model, name) == hasattr(plain, name)
        if hasattr(plain, name):
            assert getattr(model, name) == pytest.approx(getattr(plain, name), rel=1e-9, abs=1e-12)


def test_left_out_samples_with_company_everywhere(client):
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.arange(40) % 2
    plain = POPFClassifier().fit(X, y)
    model = DaskPOPFClassifier(client).fit(*as_dask(X, y, 8))
    np.testing.assert_allclose(model.bandwidths_, plain.bandwidths_, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-9)


def test_parameters_are_those_of_the_plain_estimators(client):
    ours = {"client", "block_size", "scratch"}
    for dask_class, plain_class in (
        (DaskOPFClassifier, OPFClassifier),
        (DaskPOPFClassifier, POPFClassifier),
    ):
        mine, plain = dask_class().get_params(), plain_class().get_params()
        plain.pop("linear_map", None)  # maps are fitted to all samples at once
        assert {name: value for name, value in mine.items() if name not in ours} == plain
        copy = clone(dask_class(client, block_size=7, metric="manhattan"))
        assert (copy.client, copy.block_size, copy.metric) == (client, 7, "manhattan")


def test_dataframes_keep_their_partitions_index_and_names(client):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(200, 2, rng)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(200) + 1000)
    labels = pd.Series(np.where(y, "yes", "no"), index=frame.index)
    lazy = dd.from_pandas(frame, npartitions=4)
    model = DaskPOPFClassifier(client).fit(lazy, dd.from_pandas(labels, npartitions=3))
    plain = POPFClassifier().fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    got = model.predict(lazy)
    assert got.divisions == lazy.divisions
    assert got.compute(scheduler=client).tolist() == plain.predict(frame).tolist()
    proba = model.predict_proba(lazy)
    assert proba.columns.tolist() == ["no", "yes"]
    table = proba.compute(scheduler=client)
    pd.testing.assert_index_equal(table.index, frame.index)
    np.testing.assert_allclose(table.to_numpy(), plain.predict_proba(frame), atol=1e-9)
    pd.testing.assert_frame_equal(model.predict_proba(frame), table)
    assert model.to_local().predict(frame).tolist() == plain.predict(frame).tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(lazy[["b", "a"]])


def test_any_partitions_do(client):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(120, 4, rng)
    order = np.argsort(y, kind="stable")  # most partitions hold one class only
    X, y = X[order], y[order]
    plain = OPFClassifier().fit(X, y)
    unknown = da.from_array(X, chunks=(30, 4))
    unknown = unknown[da.from_array(np.ones(120, dtype=bool), chunks=30)]
    assert np.isnan(unknown.shape[0])
    with_empty = da.concatenate(
        [da.zeros((0, 4)), da.from_array(X, chunks=(40, 4)), da.zeros((0, 4))]
    )
    across = da.from_array(X, chunks=(25, 3))
    for lazy in (unknown, with_empty, across):
        for labels in (da.from_array(y, chunks=50), y, da.from_array(y[:, None], chunks=(7, 1))):
            assert_same_forest(DaskOPFClassifier(client).fit(lazy, labels), plain)
    model = DaskOPFClassifier(client).fit(X, y)
    for lazy in (unknown, with_empty, across):
        got = model.predict(lazy).compute(scheduler=client)
        np.testing.assert_array_equal(got, plain.predict(X))


def test_samples_of_no_weight_are_left_out(client):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(150, 2, rng)
    weight = rng.integers(0, 2, size=150)
    weight[:50] = 0  # the whole first partition
    plain = OPFClassifier().fit(X, y, weight)
    model = DaskOPFClassifier(client).fit(*as_dask(X, y), da.from_array(weight, chunks=50))
    assert_same_forest(model, plain)
    np.testing.assert_array_equal(model.sample_indices_, plain.sample_indices_)


@pytest.fixture
def small():
    X, y = two_classes(60, 2, np.random.default_rng(SEED))
    return X, y


def test_a_memory_map_is_fitted_in_blocks(small, tmp_path):
    X, y = small
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    plain = OPFClassifier().fit(X.astype(np.float32), y)
    labels = np.load(tmp_path / "y.npy", mmap_mode="r")
    for source, target in ((mapped, y), (mapped, labels), (tmp_path / "X.npy", y)):
        model = DaskOPFClassifier(block_size=20).fit(source, target)
        assert_same_forest(model, plain)
        assert model.n_blocks_ >= 3
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    part = DaskOPFClassifier(block_size=20).fit(mapped[10:50], y[10:50])
    assert_same_forest(part, OPFClassifier().fit(X.astype(np.float32)[10:50], y[10:50]))


def test_a_parquet_folder_is_fitted_in_blocks(small, tmp_path):
    X, y = small
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(label=np.where(y, "yes", "no"))
    frame.iloc[:35].to_parquet(tmp_path / "0.parquet", row_group_size=10)
    frame.iloc[35:].to_parquet(tmp_path / "1.parquet", row_group_size=10)
    plain = POPFClassifier().fit(frame[["a", "b"]], frame["label"])
    model = DaskPOPFClassifier(block_size=20).fit(tmp_path, "label")
    np.testing.assert_array_equal(model.opf_.costs_, plain.opf_.costs_)
    np.testing.assert_allclose(
        model.predict_proba(frame[["a", "b"]]), plain.predict_proba(frame[["a", "b"]]), atol=1e-9
    )
    with pytest.raises(ValueError, match="no column 'class'"):
        DaskOPFClassifier().fit(tmp_path, "class")
    with pytest.raises(TypeError, match="name of a column"):
        DaskOPFClassifier().fit(tmp_path, y)


def test_the_temporary_folder_goes_with_the_estimator(small):
    model = DaskOPFClassifier().fit(*small)  # no client: threads of this process, blocks on disk
    folder = model._scratch
    assert os.path.isdir(folder)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(small[0]), model.predict(small[0]))
    del model
    gc.collect()
    assert not os.path.exists(folder)


def test_what_lies_on_the_cluster_is_not_pickled(client, small):
    model = DaskOPFClassifier(client).fit(*as_dask(*small))
    with pytest.raises(TypeError, match="to_local"):
        pickle.dumps(model)
    copy = pickle.loads(pickle.dumps(model.to_local()))
    np.testing.assert_array_equal(copy.predict(small[0]), model.predict(small[0]))


def test_bad_input_gives_one_clear_error(client, small):
    X, y = small
    lazy = as_dask(X, y, 20)
    nan = X.copy()
    nan[31, 1] = np.nan
    mixed = da.concatenate(
        [
            da.from_array(np.array(["a"] * 30, dtype=object), chunks=30),
            da.from_array(np.array([1] * 30, dtype=object), chunks=30),
        ]
    )
    words = pd.DataFrame({"a": X[:, 0], "b": ["x"] * 60})
    fit = DaskOPFClassifier(client).fit
    for call, error, message in (
        (lambda: fit(*as_dask(nan, y, 20)), ValueError, "contains NaN"),
        (
            lambda: fit(as_dask(X, y, 30)[0], mixed),
            TypeError,
            "several types in different partitions",
        ),
        (lambda: fit(lazy[0], y[:-1]), ValueError, "one entry for each of the 60 rows"),
        (lambda: fit(lazy[0], np.zeros(60)), ValueError, "one class only"),
        (lambda: fit(lazy[0], X[:, 0]), ValueError, "continuous"),
        (lambda: fit(lazy[0], None), ValueError, "requires y"),
        (lambda: fit(lazy[0][:0], y[:0]), ValueError, "0 sample"),
        (lambda: fit(lazy[0][:, 0], y), ValueError, "rows and columns"),
        (lambda: fit(*lazy, -np.ones(60)), ValueError, r"sample_weight\[\d+\] is -1.0"),
        (lambda: fit(*lazy, np.zeros(60)), ValueError, "zero everywhere"),
        (lambda: fit(dd.from_pandas(words, npartitions=2), y), ValueError, "column 'b'"),
        (lambda: fit("nowhere", y), FileNotFoundError, "nowhere"),
        (lambda: DaskOPFClassifier("here").fit(*lazy), TypeError, "Client or None"),
        (lambda: DaskOPFClassifier(client, block_size=0).fit(*lazy), ValueError, "block_size"),
        (
            lambda: DaskOPFClassifier(client, metric="precomputed").fit(*lazy),
            ValueError,
            "precomputed",
        ),
        (
            lambda: DaskOPFClassifier(client, metric="mahalanobis").fit(*lazy),
            ValueError,
            "metric_params",
        ),
        (
            lambda: DaskPOPFClassifier(client, method="paper").fit(lazy[0], np.arange(60) % 3),
            ValueError,
            "Only binary",
        ),
        (lambda: DaskPOPFClassifier(client, threshold=2.0).fit(*lazy), ValueError, "threshold"),
    ):
        with pytest.raises(error, match=message):
            call()
    model = fit(*lazy)
    with pytest.raises(ValueError, match="X has 1 features"):
        model.predict(lazy[0][:, :1])
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(da.from_array(nan, chunks=(20, 2))).compute(scheduler=client)


def test_workers_with_other_versions_are_refused(client, small, monkeypatch):
    versions = client.get_versions(packages=["popf"])
    address = next(iter(versions["workers"]))

    def tell(there):
        told = client.__class__.get_versions(client, packages=[*cluster.SAME, *cluster.ALIKE])
        told["workers"][address]["packages"]["popf"] = there
        return told

    for there, message in (("0.0.1", "has popf 0.0.1, but"), (None, "has no popf, but")):
        told = tell(there)
        monkeypatch.setattr(client, "get_versions", lambda packages, told=told: told)
        with pytest.raises(RuntimeError, match=message):
            DaskOPFClassifier(client).fit(*as_dask(*small))
        monkeypatch.undo()


def test_an_interrupt_cancels_what_is_under_way(client, small, monkeypatch):
    asked = []

    def interrupt(self, futures):
        asked.append(futures)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return self.client.gather(futures)

    monkeypatch.setattr(cluster.Tasks, "gather", interrupt)
    model = DaskOPFClassifier(client)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*as_dask(*small))
    assert all(future.cancelled() for future in asked[-1])
    assert not hasattr(model, "costs_")
    assert not model.__sklearn_is_fitted__()


def test_tasks_have_names_that_people_can_read(client, small):
    seen = []
    plain = client.submit

    def submit(*arguments, key, **rest):
        seen.append(dask.utils.key_split(key))
        return plain(*arguments, key=key, **rest)

    client.submit = submit
    try:
        DaskOPFClassifier(client).fit(*as_dask(*small, 20))
    finally:
        del client.submit
    assert {"tree-of-block", "tree-of-two-blocks", "merge-trees", "grow-forest"} <= set(seen)


def quiet_cluster(n_workers):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=50,
        memory_limit=0,
    )


def test_killed_workers_cost_time_but_change_nothing(monkeypatch):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(800, 2, rng)
    X = np.round(X, 2)
    plain = OPFClassifier().fit(X, y)
    killed = []

    def gather(self, futures):
        # The first two times that pairs of blocks are under way, a worker that holds some is killed.
        keys = {key for keys in self.client.has_what().values() for key in keys}
        # Keys of collections are tuples, their name first.
        names = {key if isinstance(key, str) else key[0] for key in keys}
        if len(killed) < 2 and any(name.startswith("gather-block") for name in names):
            held = self.client.has_what()
            address = max(held, key=lambda a: len(held[a]))
            pids = self.client.run(os.getpid)
            os.kill(pids[address], signal.SIGKILL)
            killed.append(pids[address])
        return self.client.gather(futures)

    monkeypatch.setattr(cluster.Tasks, "gather", gather)
    with quiet_cluster(3) as processes, Client(processes, set_as_default=False) as workers:
        model = DaskOPFClassifier(workers).fit(*as_dask(X, y, 200))
        assert len(set(killed)) == 2
        assert_same_forest(model, plain)
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
        workers.wait_for_workers(3, timeout=120)  # others could be started in the middle of the fit


def test_a_lost_scheduler_gives_an_error_and_no_model(small, monkeypatch):
    lost = LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address=":0",
        silence_logs=50,
    )
    asked = []

    def gather(self, futures):
        asked.append(futures)
        if len(asked) == 3:
            threading.Thread(target=lost.close).start()
        return self.client.gather(futures)

    monkeypatch.setattr(cluster.Tasks, "gather", gather)
    with Client(lost, set_as_default=False) as connected:
        model = DaskOPFClassifier(connected)
        with pytest.raises(RuntimeError, match="connection to Dask's scheduler was lost"):
            model.fit(*as_dask(*small))
        assert not model.__sklearn_is_fitted__()
        assert not hasattr(model, "costs_")


def test_the_source_of_blocks_is_cut_as_told():
    rng = np.random.default_rng(SEED)
    X, y = two_classes(500, 2, rng)
    tasks = Here()
    chunks = [Rows(X[i : i + 100], y[i : i + 100], None) for i in range(0, 500, 100)]
    source = Source(chunks, [100] * 5, 2, None, False)
    blocks = dealing.deal_blocks(tasks, source, choose_metric("euclidean", None), None, None)
    assert len(blocks.blocks) == 5
    assert blocks.sizes.max() <= 150
    together = np.sort(np.concatenate([block.samples for block in blocks.blocks]))
    np.testing.assert_array_equal(together, np.arange(500))
    for block in blocks.blocks:
        assert (np.diff(block.samples) > 0).all()
        np.testing.assert_array_equal(np.ldexp(block.points, blocks.exponent), X[block.samples])
        np.testing.assert_array_equal(block.codes, y[block.samples])
