"""No figure outlives its test."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")
