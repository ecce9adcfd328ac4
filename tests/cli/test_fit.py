"""``popf fit`` on a person's own table: its columns, and the models that come of it."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
from popf.__main__ import main
from popf.table_models import open_model
from table_commands import consumers, facts, fit, refused, scores

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")


def test_unknown_categories_are_counted_and_scored(place, tmp_path, capsys):
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    new.loc[[3, 5], "region"] = "moon"
    new.to_csv(tmp_path / "moon.csv", index=False)
    words = ("predict", place / "model.popf", tmp_path / "moon.csv", "-o", tmp_path / "o.csv")
    assert facts(capsys, *words)["unknown_categories"] == {"region": 2}
    assert main(list(map(str, words))) == 0
    said = capsys.readouterr()
    assert "never seen in training, in 2 rows" in said.err
    assert pd.read_csv(tmp_path / "o.csv")["probability_yes"].between(0, 1).all()


@pytest.mark.parametrize("how", ["median", "mean"])
def test_missing_numbers_are_filled_in_as_told(tmp_path, capsys, how):
    frame = consumers(80)
    frame.loc[[2, 4], "demand"] = np.nan
    frame.loc[9, "region"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    out = tmp_path / "m.popf"
    base = ["fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer", "-o", out]
    said = refused(capsys, *base)
    assert "'demand' (2); the first in row 3" in said
    assert facts(capsys, *base, "--missing", how)["n_imputed"] == 2
    known = frame["demand"].dropna()
    filled = frame.fillna({"demand": {"median": known.median(), "mean": known.mean()}[how]})
    features = ["demand", "load", "region"]
    model = popf.load(out)
    np.testing.assert_allclose(
        model.predict_proba(frame[features].astype({"region": object})),
        model.predict_proba(filled[features].astype({"region": object})),
        rtol=1e-9,
    )


def test_other_marks_for_missing_values(tmp_path, capsys):
    frame = consumers(80).astype({"load": object})
    frame.loc[5, "load"] = "n.d."
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ["fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer"]
    base += ["-o", tmp_path / "m.popf"]
    assert "'n.d.' in row 6" in refused(capsys, *base)
    assert "'load' (1)" in refused(capsys, *base, "--na", "n.d.")
    assert facts(capsys, *base, "--na", "n.d.", "--missing", "mean")["n_imputed"] == 1


def test_numbers_may_be_categories_and_columns_left_out(tmp_path, capsys):
    frame = consumers(80).assign(tariff=np.arange(80) % 3, note="x")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer")
    words += ("--categorical", "tariff", "--drop", "note", "-o", tmp_path / "m.popf")
    found = facts(capsys, *words)
    assert found["columns"] == {
        "consumer": "id",
        "demand": "number",
        "load": "number",
        "region": "category, 2 values",
        "stolen": "target",
        "tariff": "category, 3 values",
        "note": "dropped",
    }
    assert open_model(tmp_path / "m.popf").layout.categories == ["region", "tariff"]


def test_a_column_of_names_is_no_category(place, tmp_path, capsys):
    out = tmp_path / "m.popf"
    assert main(["fit", str(place / "train.csv"), "--target", "stolen", "-o", str(out)]) == 0
    assert "'consumer' has another whole number in every row" in capsys.readouterr().err
    frame = consumers(80).assign(owner=[f"owner {i}" for i in range(80)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ("fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer")
    said = refused(capsys, *base, "-o", out)
    assert "'owner' holds 80 different texts in 80 rows" in said
    assert "--id owner" in said


def test_rows_in_equal_groups_are_called_out(tmp_path, capsys):
    named = np.arange(80) ** 2 % 71
    table = consumers(80).assign(person=np.arange(80) // 4, meterID=named, paid=named)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path / "t.csv", tmp_path / "m.popf") == 0
    said = capsys.readouterr().err
    assert "'person' has 20 values in 4 rows each" in said
    assert "--one-per person" in said
    assert "'meterID' is called an id" in said
    assert "'paid'" not in said
    assert "'demand'" not in said


def test_all_problems_of_a_table_are_listed_at_once(tmp_path, capsys):
    frame = consumers(60).assign(
        price="$1,200.50",
        day=[f"{1 + i % 28}/5/2024" for i in range(60)],
        owner=[f"owner {i}" for i in range(60)],
        nothing="",
    )
    frame["height, m"] = "1,75"
    frame.loc[[3, 7], "load"] = np.nan
    frame.loc[5, "stolen"] = ""
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    words = ["fit", tmp_path / "t.csv", "--target", "stolen", "--drop", "consumr"]
    assert main([str(word) for word in (*words, "-o", tmp_path / "m.popf")]) == 2
    first, *problems, last = capsys.readouterr().err.splitlines()
    assert first == f"popf: {tmp_path / 't.csv'} cannot be used as it is:"
    expected = (
        "--drop: there is no column 'consumr'; did you mean consumer",
        "'price' holds amounts, such as '$1,200.50'",
        "'day' holds dates or times, such as '1/5/2024'",
        "'owner' holds 60 different texts in 60 rows",
        "'nothing' holds nothing at all",
        "'height, m' holds numbers with a decimal comma, such as '1,75'",
        "numbers are missing in 'load' (2); the first in row 4",
        "'stolen' has no label in 1 row, the first is row 6",
    )
    assert len(problems) == len(expected)
    for problem, words_of_it in zip(problems, expected, strict=True):
        assert words_of_it in problem
    options = "--drop price --id day --id owner --drop nothing --decimal , --missing median"
    assert last == f"- What would do: {options}"


def test_how_columns_are_read_is_shown_before_and_after_the_fit(tmp_path, capsys):
    frame = consumers(80).assign(tariff=["basic", ""] * 40, day="2024-05-01")
    frame.to_csv(tmp_path / "t.csv")  # with the index that pandas adds, which has no name
    found = facts(capsys, "info", tmp_path / "t.csv")["columns"]
    assert list(found) == ["index", *frame.columns]
    assert found["tariff"] == {
        "read_as": "category", "n_values": 1, "n_missing": 40, "problem": "", "note": "",
    }  # fmt: skip
    assert "--drop day" in found["day"]["problem"]
    assert "--id index" in found["index"]["note"]
    assert main(["info", str(tmp_path / "t.csv")]) == 0
    assert "such as '2024-05-01'" in capsys.readouterr().out
    assert fit(tmp_path / "t.csv", tmp_path / "m.popf", "--drop", "day") == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in ("dropped 2: index, day", "ids consumer", "numbers 2: demand, load"):
        assert words in said
    assert "categories 2: region (2 values), tariff (1 value)" in said


def test_a_missing_text_is_a_category_and_whole_numbers_match(tmp_path):
    frame = consumers(80).assign(tariff=["1", "2", "", "3"] * 20)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path / "t.csv", tmp_path / "m.popf", "--categorical", "tariff") == 0
    frame["tariff"] = ["1.0", "2.0", "", "3.0"] * 20  # as pandas writes whole numbers with gaps
    frame.to_csv(tmp_path / "n.csv", index=False)
    first, again = (
        scores(tmp_path, tmp_path / "s.csv", model="m.popf", data=name)
        for name in ("t.csv", "n.csv")
    )
    pd.testing.assert_frame_equal(first, again)
    preparation = open_model(tmp_path / "m.popf").preparation
    assert preparation.count_unknown(pd.DataFrame({"region": ["north"], "tariff": [None]})) == {}


def test_one_row_per_consumer(tmp_path, capsys):
    months = pd.concat([consumers(40, seed=seed) for seed in range(3)], ignore_index=True)
    months["stolen"] = np.where(months["demand"] > 0, "yes", "no")
    months.to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path / "t.csv", tmp_path / "m.popf") == 0
    assert "--one-per consumer" in capsys.readouterr().err
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "--one-per", "consumer")
    found = facts(capsys, *words, "-o", tmp_path / "m.popf")
    assert (found["n_rows"], found["n_rows_read"]) == (40, 120)
    assert found["columns"]["consumer"] == "one per"
    other = facts(capsys, *words, "--seed", 1, "-o", tmp_path / "n.popf")
    assert other["classes"] != found["classes"]  # other rows were drawn


@pytest.mark.parametrize(("rare", "frequent"), [("fraud", "legit"), ("yes", "no")])
def test_the_rarer_class_is_the_one_to_find(tmp_path, capsys, rare, frequent):
    table = consumers(120)
    table["stolen"] = np.where(table["stolen"] == "yes", rare, frequent)
    table.to_csv(tmp_path / "t.csv", index=False)
    costs = ("--cost-fp", 1, "--cost-fn", 20)
    assert fit(tmp_path / "t.csv", tmp_path / "m.popf", *costs) == 0
    said = f"class to find: {rare}, from probability 0.0"  # a miss is dear, so the threshold is low
    assert said in capsys.readouterr().out.splitlines()[0]
    words = [str(tmp_path / "m.popf"), str(tmp_path / "t.csv")]
    assert main(["evaluate", *words]) == 0
    assert said in capsys.readouterr().out.splitlines()[0]
    assert main(["predict", *words]) == 0
    assert said in capsys.readouterr().err.splitlines()[0]
    found = facts(capsys, "evaluate", *words)
    assert found["positive"] == rare
    assert found["measures"]["recall"]["value"] > 0.9
    swapped = facts(
        capsys,
        *("fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer"),
        *("--positive", frequent, "-o", tmp_path / "o.popf"),
    )
    assert swapped["positive"] == frequent


def test_equally_frequent_classes_need_a_name_where_costs_are_given(tmp_path, capsys):
    table = consumers(60).assign(stolen=["legit", "fraud"] * 30)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "-o", tmp_path / "m.popf")
    for about in (["--cost-fp", 1, "--cost-fn", 20], ["--threshold", 0.2]):
        assert "--positive fraud or --positive legit" in refused(capsys, *words, *about)
    assert facts(capsys, *words)["positive"] == "legit"


def test_three_classes_take_the_largest_probability(tmp_path, capsys):
    frame = consumers(90).assign(kind=np.arange(90) % 3)
    frame["demand"] += 3000.0 * frame["kind"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "kind", "--id", "consumer", "--drop", "stolen")
    found = facts(capsys, *words, "-o", tmp_path / "m.popf")
    assert found["classes"] == {"0": 30, "1": 30, "2": 30}
    assert found["threshold"] is None
    scored = scores(tmp_path, tmp_path / "s.csv", model="m.popf", data="t.csv")
    table = scored[[f"probability_{k}" for k in range(3)]].to_numpy()
    assert scored["predicted"].tolist() == table.argmax(axis=1).tolist()
    measured = facts(capsys, "evaluate", tmp_path / "m.popf", tmp_path / "t.csv")
    assert np.array(measured["confusion"]).sum() == 90
    assert "recall" not in measured["measures"]
    assert "for two classes" in refused(
        capsys, "predict", tmp_path / "m.popf", tmp_path / "t.csv", "--threshold", 0.3
    )


def test_a_fit_ends_with_what_the_model_and_its_parts_score(place, tmp_path, capsys):
    assert fit(place / "train.csv", tmp_path / "m.popf") == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("On rows held out of the fit in turn")
    names = ["the model", "forest alone", "linear alone", "spline alone", "class frequencies"]
    for line, name in zip(lines[at + 2 :], names, strict=False):
        assert line.strip().startswith(name)
    model = popf.load(tmp_path / "m.popf")[-1]
    scores = (model.held_out_accuracies_, model.held_out_aucs_, model.held_out_losses_)
    assert lines[at + 2].split()[2:] == [f"{score['pool']:.3f}" for score in scores]


def test_rows_kept_aside_judge_the_model(tmp_path, capsys):
    table = consumers(160)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer")
    words += ("--test-size", 0.25, "-o", tmp_path / "m.popf")
    found = facts(capsys, *words)
    assert (found["n_rows"], found["n_rows_read"], found["test"]["n_rows"]) == (120, 160, 40)
    rare = (table["stolen"] == "yes").mean()
    assert np.array(found["test"]["confusion"]).sum(axis=1)[1] == pytest.approx(40 * rare, abs=1)
    aside = np.setdiff1d(np.arange(160), open_model(tmp_path / "m.popf").preparation.rows_)
    table.iloc[aside].to_csv(tmp_path / "aside.csv", index=False)
    again = facts(capsys, "evaluate", tmp_path / "m.popf", tmp_path / "aside.csv")
    assert again == found["test"]
    assert main(list(map(str, words))) == 0
    assert "On 40 rows kept aside" in capsys.readouterr().out
    assert "--test-size must lie between 0 and 1" in refused(capsys, *words, "--test-size", 3)
    assert "--test-size: The test_size = 1" in refused(capsys, *words, "--test-size", 0.001)


def test_rows_of_one_id_are_kept_aside_together(tmp_path, capsys):
    months = consumers(240).assign(month=np.arange(240) // 40, consumer=np.arange(240) % 40)
    months["stolen"] = np.where((months["consumer"] % 4 == 0) & (months["month"] > 3), "yes", "no")
    months.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "--test-size", 0.25, "--id")

    def kept(*more):
        facts(capsys, *words, *more, "-o", tmp_path / "m.popf")
        return months.iloc[open_model(tmp_path / "m.popf").preparation.rows_]

    first, again, other = (kept("consumer", "--id", "month", "--seed", seed) for seed in (0, 0, 1))
    assert (first.groupby("consumer").size() == 6).all()  # all months of a consumer, or none
    assert first["consumer"].nunique() == 30
    # A quarter of the thieves is kept aside, though they are few and steal in two months only.
    assert first[first["stolen"] == "yes"]["consumer"].nunique() in (7, 8)
    assert first.index.tolist() == again.index.tolist() != other.index.tolist()
    by_month = kept("month", "--id", "consumer")  # the first id that repeats decides
    assert (by_month.groupby("month").size() == 40).all()


def test_the_stages_of_a_fit_are_shown_and_compiling_too(place, tmp_path, capsys, monkeypatch):
    from numba.core import event

    from popf.cli.output import stages

    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    assert fit(place / "train.csv", tmp_path / "m.popf", "--progress") == 0
    said = capsys.readouterr()
    assert "reading" in said.err
    assert "fitting 200 rows" in said.err
    assert "fitting" not in said.out
    with stages(True) as stage:
        stage("fitting")
        with event.trigger_event("numba:compile", data={"dispatcher": fit_dispatcher()}):
            pass
    assert "compiling, first run only" in capsys.readouterr().err


def fit_dispatcher():
    """Make what numba says of a function that it compiles."""
    return type("Dispatcher", (), {"py_func": fit})


def test_the_same_seed_gives_the_same_model(place, tmp_path):
    for name in ("a.popf", "b.popf"):
        assert fit(place / "train.csv", tmp_path / name, "--linear-map", "auto") == 0
    first, again = (popf.load(tmp_path / name) for name in ("a.popf", "b.popf"))
    new = pd.read_csv(place / "new.csv")[["demand", "load", "region"]]
    np.testing.assert_array_equal(first.predict_proba(new), again.predict_proba(new))


def test_a_model_saved_in_python_is_understood(place, tmp_path, capsys):
    frame = consumers(200)[["demand", "load", "stolen"]]
    model = make_pipeline(StandardScaler(), popf.POPFClassifier(threshold=0.2))
    model.fit(frame[["demand", "load"]], frame["stolen"])
    popf.save(model, tmp_path / "m.popf", X=frame[["demand", "load"]])
    scored = scores(place, tmp_path / "s.csv", model=tmp_path / "m.popf")
    new = pd.read_csv(place / "new.csv")[["demand", "load"]]
    assert scored["predicted"].tolist() == model.predict(new).tolist()
    words = ("evaluate", tmp_path / "m.popf", place / "test.csv")
    assert "give --target" in refused(capsys, *words)
    assert facts(capsys, *words, "--target", "stolen")["n_rows"] == 120
    why = facts(capsys, "explain", tmp_path / "m.popf", place / "new.csv", "--row", 3)
    assert why["path"][0]["values"].keys() == {"demand", "load"}


def test_a_model_of_labels_only_gives_labels_only(place, tmp_path, capsys):
    frame = consumers(200)
    model = popf.OPFClassifier().fit(frame[["demand", "load"]], frame["stolen"])
    popf.save(model, tmp_path / "m.popf")
    scored = scores(place, tmp_path / "s.csv", model=tmp_path / "m.popf")
    assert list(scored) == ["row", "predicted"]
    words = ("evaluate", tmp_path / "m.popf", place / "test.csv", "--target", "stolen")
    assert "labels only" in refused(capsys, *words)


def test_a_model_without_names_of_columns_is_refused(place, tmp_path, capsys):
    popf.save(popf.OPFClassifier().fit([[0.0], [1.0]], [0, 1]), tmp_path / "m.popf")
    said = refused(capsys, "predict", tmp_path / "m.popf", place / "new.csv")
    assert "without names of columns" in said
