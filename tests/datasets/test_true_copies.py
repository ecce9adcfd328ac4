"""Datasets against the true files of the paper, where these are at hand."""

import numpy as np
import pytest

from dataset_copies import EMBEDDED, PUBLIC
from popf.datasets import load
from popf.datasets.copies import difference
from popf.datasets.registry import RECORDS

pytestmark = pytest.mark.usefixtures("no_network")


@pytest.mark.parametrize("name", PUBLIC)
def test_the_true_data_agree_with_the_facts(public_data, name):
    record = RECORDS[name]
    if not (public_data / record.file).exists():
        pytest.skip(f"{record.file} is missing: put it into the folder of POPF_DATA")
    bunch = load(name, data_home=public_data, download=False)
    assert bunch.data.shape == (record.n_samples, record.n_features)
    assert bunch.source == str(public_data / record.file)
    assert set(np.unique(bunch.target)) == set(record.class_names)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name.endswith("_scale")])
def test_scaling_the_raw_data_gives_the_scaled_file(public_data, name, tmp_path):
    raw = RECORDS[name].raw_file
    if not (public_data / raw).exists() or not (public_data / RECORDS[name].file).exists():
        pytest.skip(f"{raw} is missing: put it into the folder of POPF_DATA")
    theirs = load(name, data_home=public_data)
    (tmp_path / raw).write_bytes((public_data / raw).read_bytes())
    ours = load(name, data_home=tmp_path)
    assert ours.source == str(tmp_path / raw)
    np.testing.assert_allclose(ours.data, theirs.data, atol=1e-6)
    file = "breast-w_scale" if raw == "breast-cancer" else RECORDS[name].file
    assert difference(ours.data, ours.target, file) is None


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_copies_hold_the_same_rows_as_the_true_data(public_data, name):
    if not (public_data / RECORDS[name].file).exists():
        pytest.skip(f"{name} is missing: put it into the folder of POPF_DATA")

    def rows(bunch):
        # One sample a row, in an order that does not depend on the last digits.
        whole = np.column_stack([bunch.target, bunch.data])
        return whole[np.lexsort(np.round(whole, 4).T)]

    ours, theirs = load(name), load(name, data_home=public_data)
    np.testing.assert_allclose(rows(ours), rows(theirs), atol=1e-6)
