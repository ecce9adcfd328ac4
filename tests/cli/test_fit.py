"""``popf fit`` on a person's own table: its columns, and the models that come of it."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
from popf.__main__ import main
from popf.table_models import open_model
from table_commands import (
    QUICK,
    consumer_months,
    consumers,
    facts,
    fit,
    fitting,
    pd,
    printed,
    refused,
    run,
    scores,
)


@pytest.fixture
def files(tmp_path):
    """A table that a test writes, and the model that it fits."""
    return tmp_path / "t.csv", tmp_path / "m.popf"


def test_gaps_are_filled_in(files, capsys):
    table, model = files
    frame = consumers(80)
    frame.loc[[2, 4], "demand"] = np.nan
    frame.loc[9, "region"] = np.nan
    frame.to_csv(table, index=False, na_rep="n.d.")
    assert "'n.d.' in row 3" in refused(capsys, *fitting(*files))
    marked = fitting(*files, "--na", "n.d.", *QUICK)
    assert facts(capsys, *marked)["gaps"] == {"demand": 2, "region": 1}
    assert "missing     3 cells in demand (2), region (1)" in printed(capsys, *marked).out
    filled = frame.fillna({"demand": frame["demand"].median()})
    first, again = (
        popf.load(model).predict_proba(
            rows[["demand", "load", "region"]].astype({"region": object})
        )
        for rows in (frame, filled)
    )
    np.testing.assert_allclose(first, again, rtol=1e-9)


def test_dates_are_features(files, capsys, tmp_path):
    frame = consumers(120)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(120) * 7 % 365, unit="D")
    frame["stolen"] = np.where(days.month > 6, "yes", "no")
    for form in ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y"):
        frame.assign(day=days.strftime(form)).to_csv(files[0], index=False)
        found = facts(capsys, *fitting(*files, *QUICK))
        assert found["columns"]["day"]["read_as"] == "date"
        assert found["held_out"]["pool"]["auc"] > 0.95
    found = scores(tmp_path, tmp_path / "s.csv", model="m.popf", data="t.csv")
    assert (found["predicted"] == frame["stolen"]).mean() > 0.9


def test_a_column_that_pandas_made_of_an_index_is_none(files, capsys):
    consumers(60).reset_index().rename(columns={"index": "Unnamed: 0"}).to_csv(
        files[0], index=False
    )
    found = facts(capsys, *fitting(*files, *QUICK))
    assert found["columns"]["Unnamed: 0"]["read_as"] == "dropped"


@pytest.mark.parametrize("pair", [(0, 1), ("no", "yes"), (False, True), ("N", "Y")])
@pytest.mark.parametrize("rare", [0, 1])
def test_the_positive_class_by_convention(files, capsys, pair, rare):
    table = consumers(100)
    labels = np.full(100, pair[1 - rare], dtype=object)
    labels[:30] = pair[rare]
    table.assign(stolen=labels).to_csv(files[0], index=False)
    assert f"positive class: {pair[1]}," in printed(capsys, *fitting(*files, *QUICK)).out


def test_numbers_may_be_categories_and_columns_left_out(files, capsys):
    frame = consumers(80).assign(tariff=np.arange(80) % 3, note="x")
    frame.to_csv(files[0], index=False)
    found = facts(capsys, *fitting(*files, *QUICK, "--categorical", "tariff", "--drop", "note"))
    assert {name: column["read_as"] for name, column in found["columns"].items()} == {
        "consumer": "id",
        "demand": "number",
        "load": "number",
        "region": "category",
        "stolen": "target",
        "tariff": "category",
        "note": "dropped",
    }
    assert found["columns"]["tariff"]["n_values"] == 3
    assert open_model(files[1]).layout.categories == ["region", "tariff"]


def test_columns_that_look_like_ids_are_called_out(files, capsys):
    named = np.arange(80) ** 2 % 71
    table = consumers(80).assign(person=np.arange(80) // 4, meterID=named, paid=named[::-1])
    table.to_csv(files[0], index=False)
    said = printed(capsys, "fit", files[0], "--target", "stolen", *QUICK, "-o", files[1]).err
    for words in (
        "'consumer' has a different value in every row",
        "'person' has 20 values with 4 rows each",
        "--one-per person",
        "'meterID' is named like an id",
    ):
        assert words in said
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
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "--drop", "consumr", "-o", "m.popf")
    assert main(list(map(str, words))) == 2
    first, *problems, last = capsys.readouterr().err.splitlines()
    assert first == f"popf: {tmp_path / 't.csv'} cannot be used as it is:"
    expected = (
        "--drop: there is no column 'consumr'; did you mean consumer",
        "'price' holds amounts, such as '$1,200.50'",
        "'height, m' holds numbers with a decimal comma, such as '1,75'",
        "'stolen' has no label in 1 row, the first is row 6",
    )
    assert len(problems) == len(expected)
    for problem, words_of_it in zip(problems, expected, strict=True):
        assert words_of_it in problem
    options = "--drop price --decimal ,"
    assert last == f"- Try: {options}"


def test_how_columns_are_read_is_shown_before_and_after_the_fit(tmp_path, capsys):
    frame = consumers(80).assign(tariff=["basic", ""] * 40, day="2024-05-01")
    frame.to_csv(tmp_path / "t.csv")  # with the index that pandas adds, which has no name
    everything = facts(capsys, "info", tmp_path / "t.csv")
    assert everything["n_rows"] == 80
    found = everything["columns"]
    assert list(found) == ["index", *frame.columns]
    assert found["tariff"] == {
        "read_as": "category", "n_values": 1, "n_missing": 40, "problem": "", "note": "",
    }  # fmt: skip
    assert found["day"]["read_as"] == "date"
    assert found["index"]["read_as"] == "dropped"
    said = printed(capsys, "info", tmp_path / "t.csv").out
    assert f"t.csv: 80 rows, {len(found)} columns" in said
    fitted = fitting(tmp_path / "t.csv", tmp_path / "m.popf", "--drop", "day", *QUICK)
    said = " ".join(printed(capsys, *fitted).out.split())
    for words in ("dropped 2: index, day", "ids consumer", "numbers 2: demand, load"):
        assert words in said
    assert "categories 2: region (2 values), tariff (1 value)" in said


def test_a_missing_text_is_a_category_and_whole_numbers_match(files, tmp_path):
    frame = consumers(80).assign(tariff=["1", "2", "", "3"] * 20)
    frame.to_csv(files[0], index=False)
    fit(*files, "--categorical", "tariff", *QUICK)
    frame["tariff"] = ["1.0", "2.0", "", "3.0"] * 20  # as pandas writes whole numbers with gaps
    frame.to_csv(tmp_path / "n.csv", index=False)
    first, again = (
        scores(tmp_path, tmp_path / "s.csv", model="m.popf", data=name)
        for name in ("t.csv", "n.csv")
    )
    pd.testing.assert_frame_equal(first, again)
    columns = open_model(files[1]).columns
    new = {"demand": [1.0], "load": [1.0], "region": ["north"], "tariff": [None]}
    assert columns.count_unseen(pd.DataFrame(new)) == {}


def test_one_row_per_consumer(files, capsys):
    months = pd.concat([consumers(40, seed=seed) for seed in range(3)], ignore_index=True)
    months["stolen"] = np.where(months["demand"] > 0, "yes", "no")
    months.to_csv(files[0], index=False)
    said = "'consumer' repeats (40 values): rows with the same value are held out together."
    assert said in printed(capsys, *fitting(*files, *QUICK)).err
    words = ("fit", files[0], "--target", "stolen", "--one-per", "consumer", *QUICK, "-o", files[1])
    found = facts(capsys, *words)
    assert (found["n_rows"], found["n_rows_read"]) == (40, 120)
    assert found["columns"]["consumer"]["read_as"] == "one per"
    other = facts(capsys, *words, "--seed", 1)
    assert other["class_counts"] != found["class_counts"]  # other rows were drawn


@pytest.mark.parametrize(("rare", "frequent"), [("fraud", "legit"), ("yes", "no")])
def test_the_rarer_class_is_the_one_to_find(files, capsys, rare, frequent):
    table = consumers(100)
    table["stolen"] = np.where(table["stolen"] == "yes", rare, frequent)
    table.to_csv(files[0], index=False)
    said = f"positive class: {rare}, threshold 0.1"  # a miss is dear, so the threshold is low
    costs = (*QUICK, "--cost-fp", 1, "--cost-fn", 20)
    assert said in printed(capsys, *fitting(*files, *costs)).out.splitlines()[0]
    assert said in printed(capsys, "predict", *files[::-1]).err.splitlines()[0]
    found = facts(capsys, "evaluate", *files[::-1])
    assert found["positive"] == rare
    assert found["measures"]["recall"]["value"] > 0.9
    swapped = facts(capsys, *fitting(*files, *QUICK, "--positive", frequent))
    assert swapped["positive"] == frequent


def test_equally_frequent_classes_need_a_name_where_costs_are_given(files, capsys):
    consumers(60).assign(stolen=["legit", "fraud"] * 30).to_csv(files[0], index=False)
    for about in (["--cost-fp", 1, "--cost-fn", 20], ["--threshold", 0.2]):
        said = refused(capsys, *fitting(*files, *about))
        assert "--positive fraud or --positive legit" in said
    assert facts(capsys, *fitting(*files, *QUICK))["positive"] == "legit"


def test_three_classes_take_the_largest_probability(three, tmp_path, capsys):
    found = facts(capsys, *fitting(three / "train.csv", tmp_path / "m.popf", *QUICK))
    assert found["classes"] == ["low", "mid", "top"]
    assert found["threshold"] is None
    scored = scores(three, tmp_path / "s.csv", data="test.csv")
    table = scored[[f"probability_{name}" for name in found["classes"]]]
    assert scored["predicted"].tolist() == table.idxmax(axis=1).str.slice(12).tolist()
    words = ("predict", three / "model.popf", three / "test.csv", "--threshold", 0.3)
    assert "for two classes" in refused(capsys, *words)


def test_a_fit_ends_with_what_the_model_and_its_parts_score(place, tmp_path, capsys):
    said = printed(capsys, *fitting(place / "train.csv", tmp_path / "m.popf"))
    lines = said.out.splitlines()
    at = lines.index("Cross-validation on the training rows")
    names = ["the model", "forest alone", "linear alone", "additive alone", "trees alone"]
    names += ["class frequencies"]
    for line, name in zip(lines[at + 2 :], names, strict=False):
        assert line.strip().startswith(name)
    model = popf.load(tmp_path / "m.popf")
    scores = (model.held_out_accuracies_, model.held_out_aucs_, model.held_out_losses_)
    assert lines[at + 2].split()[2:] == [f"{score['pool']:.3f}" for score in scores]


def test_rows_kept_aside_judge_the_model(files, tmp_path, capsys):
    table = consumers(160)
    table.to_csv(files[0], index=False)
    words = fitting(*files, *QUICK, "--test-size", 0.25)
    found = facts(capsys, *words)
    assert (found["n_rows"], found["n_rows_read"], found["test"]["n_rows"]) == (120, 160, 40)
    rare = (table["stolen"] == "yes").mean()
    assert np.array(found["test"]["confusion"]).sum(axis=1)[1] == pytest.approx(40 * rare, abs=1)
    aside = np.setdiff1d(np.arange(160), open_model(files[1]).layout.rows)
    table.iloc[aside].to_csv(tmp_path / "aside.csv", index=False)
    again = facts(capsys, "evaluate", files[1], tmp_path / "aside.csv")
    assert again == {**found["test"], "importances": found["importances"]}
    assert "Evaluation on 40 test rows" in printed(capsys, *words).out
    assert "--test-size: The test_size = 1" in refused(capsys, *words, "--test-size", 0.001)
    table.assign(stolen=["once", *table["stolen"][1:]]).to_csv(files[0], index=False)
    assert "needs two rows in every class, but once has only one" in refused(capsys, *words)


def test_costs_choose_a_threshold_by_whole_ids(files, capsys):
    # Months of a consumer are alike, but tell nothing of other consumers.
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(30), 6)
    table = pd.DataFrame({"consumer": who, "stolen": np.where(who % 3 == 0, "yes", "no")})
    for name in ("demand", "load"):
        table[name] = (rng.normal(size=30)[who] + 0.01 * rng.normal(size=180)).round(5)
    table.to_csv(files[0], index=False)
    words = ("fit", files[0], "--target", "stolen", *QUICK, "--cost-fp", 1, "--cost-fn", 3)
    together = facts(capsys, *words, "--id", "consumer", "-o", files[1])["cost_per_row"]
    apart = facts(capsys, *words, "--drop", "consumer", "-o", files[1])["cost_per_row"]
    assert apart["at_threshold"] < 0.1 < 0.5 < together["at_threshold"]
    once = table.assign(stolen=np.where(who == 3, "yes", "no"))
    once.to_csv(files[0], index=False)
    said = refused(capsys, *words, "--id", "consumer", "-o", files[1])
    assert (
        "needs two different values of --id in every class, but yes has only one: give a --threshold"
        in said
    )


def test_rows_of_one_id_are_kept_aside_together(files, capsys):
    months = consumers(240).assign(month=np.arange(240) // 40, consumer=np.arange(240) % 40)
    months["stolen"] = np.where((months["consumer"] % 4 == 0) & (months["month"] > 3), "yes", "no")
    months.to_csv(files[0], index=False)
    words = ("fit", files[0], "--target", "stolen", "--test-size", 0.25, "-o", files[1])
    words = (*words, *QUICK, "--id")

    def kept(*more):
        run(*words, *more)
        return months.iloc[open_model(files[1]).layout.rows]

    first, again, other = (kept("consumer", "--id", "month", "--seed", seed) for seed in (0, 0, 1))
    assert (first.groupby("consumer").size() == 6).all()  # all months of a consumer, or none
    assert first["consumer"].nunique() == 30
    # A quarter of the thieves is kept aside, though they are few and steal in two months only.
    assert first[first["stolen"] == "yes"]["consumer"].nunique() in (7, 8)
    assert first.index.tolist() == again.index.tolist() != other.index.tolist()
    by_month = kept("month", "--id", "consumer")  # the first id that repeats decides
    assert (by_month.groupby("month").size() == 40).all()
    months.assign(stolen=np.where(months["consumer"] == 7, "yes", "no")).to_csv(
        files[0], index=False
    )
    said = "--test-size needs two different values of --id in every class, but yes has only one"
    assert said in refused(capsys, *words, "consumer")


def test_costs_need_three_ids(files, capsys):
    months = consumers(60).assign(consumer=np.arange(60) % 2)
    months.to_csv(files[0], index=False)
    words = ("fit", files[0], "--target", "stolen", "--id", "consumer", *QUICK, "-o", files[1])
    said = "which needs three different values of --id, but there are only two: give a --threshold."
    assert said in refused(capsys, *words, "--cost-fp", 1, "--cost-fn", 9)
    run(*words)


def test_rows_of_one_id_are_held_out_of_the_fit_together(files, capsys):
    # Months tell their consumer, but nothing about others.
    months = consumers(40).loc[np.repeat(np.arange(40), 6)].reset_index(drop=True)
    months["demand"] += 0.01 * np.arange(240)
    months["stolen"] = np.where(
        months["consumer"].isin(months["consumer"].unique()[::3]), "yes", "no"
    )
    months.to_csv(files[0], index=False)
    words = ("fit", files[0], "--target", "stolen", "-o", files[1])
    torn = facts(capsys, *words, "--drop", "consumer")["held_out"]
    whole = facts(capsys, *words, "--id", "consumer")["held_out"]
    assert torn["pool"]["log_loss"] < 0.5 * torn["prior"]["log_loss"]
    assert whole["pool"]["log_loss"] > 0.9 * whole["prior"]["log_loss"]


def test_the_stages_of_a_fit_are_shown_and_compiling_too(place, tmp_path, capsys, monkeypatch):
    from numba.core import event

    from popf.cli.terminal import stages

    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    words = (*QUICK, "--progress")
    said = printed(capsys, *fitting(place / "train.csv", tmp_path / "m.popf", *words))
    assert "reading" in said.err
    assert "fitting 200 rows" in said.err
    assert "fitting" not in said.out
    compiled = type("Dispatcher", (), {"py_func": fit})  # what numba says of a function
    with stages(True) as stage:
        stage("fitting")
        with event.trigger_event("numba:compile", data={"dispatcher": compiled}):
            pass
    assert "compiling (first run only)" in capsys.readouterr().err


def test_a_model_saved_in_python_is_understood(place, tmp_path, capsys):
    frame = consumers(200)[["demand", "load", "stolen"]]
    model = make_pipeline(StandardScaler(), popf.POPFClassifier("forest", threshold=0.2))
    model.fit(frame[["demand", "load"]], frame["stolen"])
    popf.save(model, tmp_path / "m.popf", X=frame[["demand", "load"]])
    scored = scores(place, tmp_path / "s.csv", model=tmp_path / "m.popf")
    new = pd.read_csv(place / "new.csv")[["demand", "load"]]
    assert scored["predicted"].tolist() == model.predict(new).tolist()
    words = ("evaluate", tmp_path / "m.popf", place / "test.csv")
    assert "give --target" in refused(capsys, *words)
    for command in ("evaluate", "report"):  # the labels of this model are objects
        words = (command, tmp_path / "m.popf", place / "test.csv", "--target", "stolen")
        more = ("-o", tmp_path / "p.html") if command == "report" else ()
        assert facts(capsys, *words, *more)["n_rows"] == 120
    why = facts(capsys, "explain", tmp_path / "m.popf", place / "new.csv", "--row", 3)
    assert why["path"][0]["values"].keys() == {"demand", "load"}


def test_a_model_of_labels_only_gives_labels_only(place, tmp_path, capsys):
    frame = consumers(200)
    model = popf.OPFClassifier().fit(frame[["demand", "load"]], frame["stolen"])
    popf.save(model, tmp_path / "m.popf")
    scored = scores(place, tmp_path / "s.csv", model=tmp_path / "m.popf")
    assert list(scored) == ["row", "predicted"]
    words = ("predict", tmp_path / "m.popf", place / "new.csv")
    assert printed(capsys, *words).err == "popf: scored 90 rows; label: class of the best path.\n"
    assert "labels only" in refused(capsys, *words, "--threshold", 0.2)
    words = ("evaluate", tmp_path / "m.popf", place / "test.csv", "--target", "stolen")
    assert "labels only" in refused(capsys, *words)


def test_a_model_without_names_of_columns_is_refused(place, tmp_path, capsys):
    popf.save(popf.OPFClassifier().fit([[0.0], [1.0]], [0, 1]), tmp_path / "m.popf")
    said = refused(capsys, "predict", tmp_path / "m.popf", place / "new.csv")
    assert "without column names" in said


def test_the_papers_method_fits_any_table(files, three, capsys):
    months = consumer_months(120)
    months.to_csv(files[0], index=False)
    words = ["--method", "paper", "--drop", "month", "--positive", "yes"]
    words += ["--cost-fp", 1, "--cost-fn", 5]
    found = facts(capsys, *fitting(*files, *words))  # rows of one id share a fold, as with others
    assert found["held_out"] == {}
    final = popf.load(files[1])[-1]
    assert isinstance(final, popf.PlattOPFClassifier)
    assert final.threshold in (found["threshold"], 1.0 - found["threshold"])
    run(*fitting(three / "train.csv", files[1], "--method", "paper"))
    many = popf.load(files[1])
    assert many[-1].A_.shape == (3,)
    assert facts(capsys, "evaluate", files[1], three / "test.csv")["n_rows"] == 150
    for command in (["info", files[1]], ["explain", files[1], three / "test.csv", "--row", 1]):
        assert printed(capsys, *command).out
    run("report", files[1], three / "test.csv", "-o", files[1].with_name("page.html"))
