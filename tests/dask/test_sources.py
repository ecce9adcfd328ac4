"""What a cluster fits and answers: frames, partitions, files and wrong data."""

import gc
import pickle
import tempfile

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from dask_problems import SEED, as_dask, two_classes
from popf import OPFClassifier, POPFClassifier
from popf.dask import DaskOPFClassifier, DaskPOPFClassifier
from strategies import assert_same_forest


def test_dataframes_keep_their_partitions_index_and_names(client):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(200, 2, rng)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(200) + 1000)
    labels = pd.Series(np.where(y, "yes", "no"), index=frame.index)
    lazy = dd.from_pandas(frame, npartitions=4)
    model = DaskPOPFClassifier(client, method="forest")
    model.fit(lazy, dd.from_pandas(labels, npartitions=3))
    plain = POPFClassifier("forest").fit(frame, labels)
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
    some_labels = (da.from_array(y, chunks=50), y, da.from_array(y[:, None], chunks=(7, 1)))
    for lazy, labels in zip((unknown, with_empty, across), some_labels, strict=True):
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


def test_a_memory_map_is_fitted_in_blocks(few_samples, tmp_path):
    X, y = few_samples
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


def test_a_parquet_folder_is_fitted_in_blocks(few_samples, tmp_path):
    X, y = few_samples
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(label=np.where(y, "yes", "no"))
    frame.iloc[:35].to_parquet(tmp_path / "0.parquet", row_group_size=10)
    frame.iloc[35:].to_parquet(tmp_path / "1.parquet", row_group_size=10)
    plain = POPFClassifier("forest").fit(frame[["a", "b"]], frame["label"])
    model = DaskPOPFClassifier(method="forest", block_size=20).fit(tmp_path, "label")
    np.testing.assert_array_equal(model.opf_.costs_, plain.opf_.costs_)
    np.testing.assert_allclose(
        model.predict_proba(frame[["a", "b"]]), plain.predict_proba(frame[["a", "b"]]), atol=1e-9
    )
    with pytest.raises(ValueError, match="no column 'class'"):
        DaskOPFClassifier().fit(tmp_path, "class")
    with pytest.raises(TypeError, match="name of a column"):
        DaskOPFClassifier().fit(tmp_path, y)


def test_the_temporary_folder_goes_with_the_estimator(few_samples, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # No client: threads of this process, blocks on disk.
    model = DaskOPFClassifier().fit(*few_samples)
    assert len(list(tmp_path.glob("popf-*"))) == 1
    with pytest.raises(TypeError, match="temporary folder"):
        pickle.dumps(model)
    labels = model.predict(few_samples[0])
    del model
    gc.collect()
    assert list(tmp_path.glob("popf-*")) == []
    scratch = tmp_path / "scratch"
    copy = pickle.loads(pickle.dumps(DaskOPFClassifier(scratch=scratch).fit(*few_samples)))
    np.testing.assert_array_equal(copy.predict(few_samples[0]), labels)
    lasting = DaskPOPFClassifier(method="forest", scratch=scratch).fit(*few_samples)
    copy = pickle.loads(pickle.dumps(lasting))
    expected = lasting.predict_proba(few_samples[0])
    np.testing.assert_array_equal(copy.predict_proba(few_samples[0]), expected)
    np.testing.assert_array_equal(copy.opf_.costs_, lasting.opf_.costs_)


def test_scratch_holds_the_blocks_of_the_last_fit_only(few_samples, tmp_path):
    X, y = few_samples
    np.save(tmp_path / "X.npy", X)
    scratch = tmp_path / "scratch"

    def folders():
        gc.collect()
        return list(scratch.iterdir())

    model = DaskOPFClassifier(scratch=scratch).fit(tmp_path / "X.npy", y)
    (first,) = folders()
    model.fit(tmp_path / "X.npy", y)
    (second,) = folders()
    assert first != second
    with pytest.raises(ValueError, match="one class"):
        model.fit(tmp_path / "X.npy", np.zeros(len(y)))
    assert folders() == []
    kept = pickle.dumps(model.fit(tmp_path / "X.npy", y))
    model = DaskOPFClassifier(scratch=scratch).fit(tmp_path / "X.npy", y)
    assert len(folders()) == 2
    del model
    assert len(folders()) == 1  # a copy may still need that of the pickled model
    assert len(pickle.loads(kept).predict(X)) == len(X)


def test_what_lies_on_the_cluster_is_not_pickled(client, few_samples):
    model = DaskOPFClassifier(client).fit(*as_dask(*few_samples))
    with pytest.raises(TypeError, match="to_local"):
        pickle.dumps(model)
    copy = pickle.loads(pickle.dumps(model.to_local()))
    np.testing.assert_array_equal(copy.predict(few_samples[0]), model.predict(few_samples[0]))


def test_bad_input_gives_one_clear_error(client, few_samples):
    X, y = few_samples
    lazy = as_dask(X, y, 20)
    nan = X.copy()
    nan[31, 1] = np.nan
    mixed = da.from_array(np.array(["a"] * 30 + [1] * 30, dtype=object), chunks=30)
    words = pd.DataFrame({"a": X[:, 0], "b": ["x"] * 60})

    def fit(*arguments, estimator=DaskOPFClassifier, **parameters):
        return estimator(**{"client": client, **parameters}).fit(*arguments)

    popf = {"estimator": DaskPOPFClassifier}
    negative = r"sample_weight\[\d+\] is -1.0"
    for call, error, message in (
        (lambda: fit(*as_dask(nan, y, 20)), ValueError, "contains NaN"),
        (lambda: fit(as_dask(X, y, 30)[0], mixed), TypeError, "several types in different part"),
        (lambda: fit(lazy[0], y[:-1]), ValueError, "one entry for each of the 60 rows"),
        (lambda: fit(lazy[0], np.zeros(60)), ValueError, "one class only"),
        (lambda: fit(lazy[0], X[:, 0]), ValueError, "continuous"),
        (lambda: fit(lazy[0], None), ValueError, "requires y"),
        (lambda: fit(csr_array(X), y), TypeError, "toarray"),
        (lambda: fit(X, np.array(["a", "b", None] * 20)), ValueError, r"y\[2\] is missing"),
        (lambda: fit(lazy[0][:0], y[:0]), ValueError, "0 sample"),
        (lambda: fit(lazy[0][:, 0], y), ValueError, "rows and columns"),
        (lambda: fit(*lazy, -np.ones(60)), ValueError, negative),
        (lambda: fit(*lazy, -np.ones(60), **popf), ValueError, negative),
        (lambda: fit(*lazy, np.zeros(60)), ValueError, "zero everywhere"),
        (lambda: fit(dd.from_pandas(words, npartitions=2), y), ValueError, "column 'b'"),
        (lambda: fit("nowhere", y), FileNotFoundError, "nowhere"),
        (lambda: fit(*lazy, client="here"), TypeError, "Client or None"),
        (lambda: fit(*lazy, block_size=0), ValueError, "block_size"),
        (lambda: fit(*lazy, metric="precomputed"), ValueError, "precomputed"),
        (lambda: fit(*lazy, metric="mahalanobis"), ValueError, "metric_params"),
        (lambda: fit(*lazy, method="paper", **popf), ValueError, "method"),
        (lambda: fit(*lazy, threshold=2.0, **popf), ValueError, "threshold"),
    ):
        with pytest.raises(error, match=message):
            call()
    model = fit(*lazy)
    with pytest.raises(ValueError, match="X has 1 features"):
        model.predict(lazy[0][:, :1])
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(da.from_array(nan, chunks=(20, 2))).compute(scheduler=client)
