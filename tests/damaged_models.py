"""Small models of several kinds, and their files changed under right checksums."""

import hashlib
import io
import json
import warnings
import zipfile

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier, OPFOutlierDetector, POPFClassifier
from popf.io import container
from popf.table_models.model import TablePreparation

FRAME = pd.DataFrame(np.random.default_rng(1).normal(size=(24, 2)), columns=["a", "b"])
LABELS = np.array(["no", "yes"])[np.arange(24) % 2]


def forest():
    return OPFClassifier().fit(FRAME, LABELS), FRAME


def metric_forest():
    return OPFClassifier("mahalanobis").fit(FRAME, LABELS), FRAME


def probabilities():
    y = np.arange(24) % 3
    X = FRAME.to_numpy() + y[:, None]
    return POPFClassifier(linear_map="discriminant").fit(X, y), X


def pipeline():
    prepare = TablePreparation(["a", "b"], ["c"], missing="median")
    paper = POPFClassifier("paper", solver="nelder-mead", box=None)
    frame = FRAME.assign(c=np.array(["x", "y", "z"], dtype=object)[np.arange(24) % 3])
    return make_pipeline(prepare, StandardScaler(), paper).fit(frame, LABELS), frame


def outliers():
    return OPFOutlierDetector(4, metric="manhattan").fit(FRAME), FRAME


MODELS = {
    make.__name__: make for make in (forest, metric_forest, probabilities, pipeline, outliers)
}


def rewrite(content, change):
    """Change the members of a container, and make its checksums right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    del members[container.SUMS]
    change(members)
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items()]
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(container.SUMS, "".join(sums))
    return file.getvalue()


def with_header(change):
    """Make a change of the header one of the members."""

    def change_members(members):
        header = json.loads(members[container.HEADER])
        change(header)
        members[container.HEADER] = json.dumps(header).encode()

    return change_members
