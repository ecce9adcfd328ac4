"""Fixtures that several modules share; what a fixture needs is imported when it is asked for."""

import logging
import os
import socket
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def public_data():
    """The folder of the paper's public data, if it is here."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("POPF_DATA", beside))
    if not folder.is_dir():
        pytest.skip(
            "needs the paper's data: set POPF_DATA to a folder with the files of the LIBSVM page"
        )
    return folder


@pytest.fixture(scope="session")
def opfython():
    """The other implementation, if it is here; with a handler already there it writes no log."""
    logger = logging.getLogger("opfython")
    logger.addHandler(logging.NullHandler())
    logger.setLevel(logging.WARNING)
    return pytest.importorskip("opfython", reason="opfython is not installed")


@pytest.fixture
def contrast():
    """Ratio of contrast by the accessibility guidelines; colours are RGB from 0 to 1."""

    def luminance(colour):
        c = np.array(colour)
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722] + 0.05

    return lambda *pair: max(map(luminance, pair)) / min(map(luminance, pair))


@pytest.fixture
def model_path(tmp_path):
    """Where a test may save a model."""
    return tmp_path / "model.popf"


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Only the package itself, an empty cache, and a network that is an error to touch."""
    import urllib.request

    import sklearn.datasets

    def refuse(*arguments, **options):
        raise AssertionError("a test touched the network")

    monkeypatch.delenv("POPF_DATA", raising=False)
    monkeypatch.setenv("POPF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def liver(no_network):
    """The embedded liver-disorders."""
    from popf.datasets import load

    return load("liver", download=False)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with training, test and new rows, and a model fitted to the first."""
    from table_commands import consumers, fit

    folder = tmp_path_factory.mktemp("tables")
    consumers(200).to_csv(folder / "train.csv", index=False)
    consumers(120, 1, 1000).to_csv(folder / "test.csv", index=False)
    consumers(90, 2, 5000).drop(columns="stolen").to_csv(folder / "new.csv", index=False)
    fit(folder / "train.csv", folder / "model.popf")
    return folder


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """A folder with training and test rows of three classes, and a model fitted to the first."""
    from table_commands import consumers, fit, pd

    folder = tmp_path_factory.mktemp("three")
    frame = consumers(300)
    level = frame["demand"] + 900 * np.random.default_rng(0).normal(size=300)
    frame["stolen"] = np.array(["low", "mid", "top"])[pd.qcut(level, 3, labels=False)]
    frame[::2].to_csv(folder / "train.csv", index=False)
    frame[1::2].to_csv(folder / "test.csv", index=False)
    fit(folder / "train.csv", folder / "model.popf")
    return folder


@pytest.fixture(scope="session")
def months(tmp_path_factory):
    """A folder with good rows, four months of each consumer, and a model fitted to them."""
    from table_commands import consumer_months, fit

    folder = tmp_path_factory.mktemp("months")
    consumer_months().to_csv(folder / "good.csv", index=False)
    fit(folder / "good.csv", folder / "model.popf", "--drop", "month")
    return folder


@pytest.fixture(scope="session")
def small_study():
    """The results of two datasets, three methods, seven runs."""
    from popf.experiment import run
    from strategies import blobs

    return run(
        {"one": blobs(), "other": (blobs(60, 1)[0] * [1, 1, 100, 1], blobs(60, 1)[1])},
        ["opf", "nm", "newton"],
        runs=7,
    )


@pytest.fixture(scope="module")
def client():
    """Two workers in this process; not the default client, so nobody takes it by accident."""
    from distributed import Client

    from dask_problems import quiet_cluster

    with (
        quiet_cluster(2, processes=False) as workers,
        Client(workers, set_as_default=False) as connected,
    ):
        yield connected


@pytest.fixture
def few_samples():
    """Sixty samples of two classes."""
    from dask_problems import SEED, two_classes

    return two_classes(60, 2, np.random.default_rng(SEED))
