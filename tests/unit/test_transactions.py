"""The invented bank: what is promised about its tables, and that each dial moves what it says and nothing else."""

import csv
import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import app
from pegfan.datasets import transactions

DIALS = ("in_columns", "in_amounts", "in_times", "in_structure", "in_devices")
shares = st.floats(0, 1)


@given(
    n=st.integers(2, 300),
    n_payments=st.integers(0, 500),
    fraud=shares,
    labelled=shares,
    dials=st.tuples(*[shares] * 5),
    seed=st.integers(0, 2**32),
)
def test_the_counts_are_those_asked_for_and_the_tables_fit_together(n, n_payments, fraud, labelled, dials, seed):
    bank = transactions(
        n, n_payments=n_payments, fraud=fraud, labelled=labelled, seed=seed, **dict(zip(DIALS, dials, strict=True))
    )
    assert (len(bank.accounts), len(bank.payments)) == (n, n_payments)
    assert bank.truth.sum() == round(fraud * n)
    frauds = bank.truth.sum()
    assert bank.labelled.sum() == round(labelled * frauds) + round(labelled * (n - frauds))
    ids = bank.accounts["id"]
    assert ids.is_unique
    assert ids.str.fullmatch(r"\d{7}").all()
    assert bank.payments["payer"].isin(ids).all()
    assert bank.payments["payee"].isin(ids).all()
    assert (bank.payments["payer"] != bank.payments["payee"]).all()
    assert (bank.payments["amount"] > 0).all()
    assert bank.payments["time"].is_monotonic_increasing
    assert set(bank.devices["account"]) == set(ids)
    assert not bank.devices.duplicated(["account", "device"]).any()
    known = bank.accounts["fraud"]
    np.testing.assert_array_equal(known.notna(), bank.labelled)
    np.testing.assert_array_equal(known[bank.labelled] == "yes", bank.truth[bank.labelled])
    np.testing.assert_array_equal(bank.ring >= 0, bank.truth)


@given(frauds=st.integers(0, 400), seed=st.integers(0, 2**32))
def test_rings_have_four_to_nine_members_and_the_last_takes_who_is_left(frauds, seed):
    sizes = np.bincount(transactions(400, n_payments=0, fraud=frauds / 400, seed=seed).ring + 1)[1:]
    assert sizes.sum() == frauds
    assert ((sizes[:-1] >= 4) & (sizes[:-1] <= 9)).all()
    assert not len(sizes) or min(frauds, 3) <= sizes[-1] <= 11


def test_amounts_and_balances_have_heavy_tails_and_numbers_have_gaps():
    bank = transactions(4000, n_payments=12_000)
    for values in (bank.payments["amount"], bank.accounts["balance"]):
        assert values.quantile(0.999) > 20 * values.median()
    gaps = bank.accounts[["age", "income", "balance"]].isna().mean()
    assert ((gaps > 0.02) & (gaps < 0.3)).all()
    assert bank.accounts["id"].str.startswith("0").mean() == pytest.approx(0.1, abs=0.02)


# ------------------------------------------------------------------------- the same everywhere

PINNED = {
    "nodes.csv": "8da893c59de05637",
    "payments.csv": "1240d3b65393b66d",
    "devices.csv": "6388aba6d5d9c1cd",
}


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def test_the_files_of_a_seed_are_the_same_bytes_on_every_machine(tmp_path):
    written = transactions(700, n_payments=2100, seed=5).write(tmp_path)
    assert {path.name: digest(path) for path in written} == PINNED
    again = transactions(700, n_payments=2100, seed=6).write(tmp_path / "other")
    assert all(digest(path) != PINNED[path.name] for path in again)


@pytest.mark.parametrize("dial", DIALS)
def test_a_dial_leaves_alone_what_is_not_its_own(dial):
    """What a dial moves: columns of accounts and purposes, amounts, times, partners (and who is traced by them)."""
    low, high = (transactions(600, n_payments=1800, **{dial: value}) for value in (0, 1))
    own = {
        "in_columns": {"accounts", "purpose"},
        "in_amounts": {"amount"},
        "in_times": {"time"},
        "in_structure": {"payee", "amount", "time", "purpose"},
        "in_devices": {"device"},
    }[dial]
    np.testing.assert_array_equal(low.truth, high.truth)
    np.testing.assert_array_equal(low.labelled, high.labelled)
    assert low.accounts.equals(high.accounts) == ("accounts" not in own)
    assert low.devices.equals(high.devices) == ("device" not in own)
    for column in low.payments:
        a, b = (sorted(bank.payments[column]) for bank in (low, high))
        assert a == b or column in own, column
        assert a != b or column not in own - {"purpose"}, column


# ---------------------------------------------------------------------- how much is in which


def columns_of(bank, dial):
    """What a dial is about, one row per account or payment; whose row it is; and whether that one is a fraud."""
    ids = pd.Series(np.arange(len(bank.accounts)), index=bank.accounts["id"])
    everyone = np.arange(len(ids))
    if dial == "in_columns":
        table = bank.accounts.drop(columns=["id", "fraud"])
        coded = {name: table[name].astype("category").cat.codes for name in ("country", "segment", "channel")}
        coded |= {"note": table["note"].str.len(), "opened": table["opened"].astype("int64")}
        return table.assign(**coded).astype(float).to_numpy(), everyone
    payer, payee = (bank.payments[end].map(ids).to_numpy() for end in ("payer", "payee"))
    if dial == "in_amounts":
        return bank.payments[["amount"]].to_numpy(), payer
    if dial == "in_times":
        time = bank.payments["time"]
        return np.column_stack([time.dt.hour, time.dt.day_of_year]).astype(float), payer
    if dial == "in_structure":
        A = csr_array((np.ones(len(payer)), (payer, payee)), shape=(len(ids), len(ids)))
        back = [A.sum(axis=1), A.sum(axis=0), (A > 0).sum(axis=0), (A @ A).diagonal(), (A @ A @ A).diagonal()]
        return np.column_stack(back).astype(float), everyone
    users = bank.devices.groupby("device")["account"].transform("size").groupby(bank.devices["account"])
    return pd.DataFrame({"most": users.max(), "count": users.size()}).loc[bank.accounts["id"]].to_numpy(float), everyone


def boosted_auc(bank, dial):
    """ROC AUC of boosting on half of the accounts that learned from the other half."""
    boosting = pytest.importorskip("sklearn.ensemble").HistGradientBoostingClassifier
    from pegfan.metrics import score

    x, account = columns_of(bank, dial)
    y, half = bank.truth[account], account % 2 == 0
    with threadpool_limits(1):
        model = boosting(max_iter=30, max_leaf_nodes=8, min_samples_leaf=50, early_stopping=False).fit(x[half], y[half])
        return score(np.log(model.predict_proba(x[~half])), y[~half].astype(int), "roc_auc")


@pytest.mark.long
@pytest.mark.parametrize("dial", DIALS)
def test_boosting_is_at_chance_where_a_dial_is_off_and_above_where_it_is_on(dial):
    others = dict.fromkeys(DIALS, 1.0)
    options = {"n": 8000, "n_payments": 24_000, "fraud": 0.1}
    assert abs(boosted_auc(transactions(**options, **others | {dial: 0.0}), dial) - 0.5) < 0.05
    assert boosted_auc(transactions(**options, **dict.fromkeys(DIALS, 0.0) | {dial: 1.0}), dial) > 0.6


def test_rings_pay_just_below_the_limit_at_night_and_share_devices():
    bank = transactions(3000, n_payments=9000, **dict.fromkeys(DIALS, 1.0))
    fraud = dict(zip(bank.accounts["id"], bank.truth, strict=True))
    inside = bank.payments["payer"].map(fraud) & bank.payments["payee"].map(fraud)
    below = bank.payments["amount"].between(880, 1000)
    night = bank.payments["time"].dt.hour < 5
    users = bank.devices.groupby("device")["account"].transform("size")
    of_fraud = bank.devices["account"].map(fraud)
    assert below[inside].mean() > 0.4 > 4 * below[~inside].mean()
    assert night[inside].mean() > 0.6 > 4 * night[~inside].mean()
    assert (users > 2)[of_fraud].mean() > 0.4 > 4 * (users > 2)[~of_fraud].mean()


def test_what_is_collected_is_paid_out_in_equal_parts():
    """A ring whose payments are all traced: those of the one who collects are equal, 97 % of what came in together."""
    bank = transactions(400, n_payments=4000, fraud=0.05, seed=3, **dict.fromkeys(DIALS, 1.0))
    payments = bank.payments.merge(
        pd.DataFrame({"payer": bank.accounts["id"], "ring": bank.ring}), on="payer", how="left"
    )
    repeated = payments[payments["ring"] >= 0].groupby(["payer", "amount"]).size()
    assert repeated.max() >= 3
    payer, amount = repeated.idxmax()
    came_in = bank.payments.loc[bank.payments["payee"] == payer, "amount"]
    below = came_in[came_in.between(880, 1000)].sum()
    assert 0.5 * below < repeated.max() * amount < 1.5 * below


# ------------------------------------------------------------------------------- files


def test_what_is_written_is_read_back_verbatim(tmp_path):
    bank = transactions(300, n_payments=500)
    nodes, payments, devices = bank.write(tmp_path / "new" / "folder", date_format="%d.%m.%Y")
    with nodes.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == list(bank.accounts["id"])
    assert any(row["id"].startswith("0") for row in rows)
    assert [row["note"] for row in rows] == list(bank.accounts["note"])
    assert any('"' in row["note"] and "," in row["note"] for row in rows)
    assert [row["fraud"] for row in rows] == list(bank.accounts["fraud"].fillna(""))
    assert [row["opened"] for row in rows] == list(bank.accounts["opened"].dt.strftime("%d.%m.%Y"))
    assert {row["verified"] for row in rows} == {"True", "False"}
    assert {"", "18"} & {row["age"] for row in rows}
    assert not any("." in row["age"] for row in rows)
    with payments.open(newline="", encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    assert first["time"] == bank.payments["time"][0].strftime("%d.%m.%Y %H:%M:%S")
    assert float(first["amount"]) == bank.payments["amount"][0]
    assert devices.read_bytes().count(b"\n") == len(bank.devices) + 1
    assert b"\r" not in nodes.read_bytes()


def test_the_reader_takes_accounts_and_payments(tmp_path):
    bank = transactions(300, n_payments=900)
    graph = pf.datasets.read_graph(*bank.write(tmp_path)[:2], label="fraud")
    assert graph.n == 300
    assert (graph.labels >= 0).sum() == bank.labelled.sum()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"n": 1}, "n must be at least 2"),
        ({"n_payments": -1}, "n_payments must be at least 0"),
        ({"fraud": 3}, "fraud must lie between 0 and 1, got 3"),
        ({"labelled": -0.1}, "labelled must lie between 0 and 1"),
        ({"in_times": float("nan")}, "in_times must lie between 0 and 1"),
    ],
)
def test_wrong_numbers_are_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        transactions(**options)


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError, match="in_devices must be a number"):
        transactions(in_devices=True)
    with pytest.raises(TypeError, match="n must be an integer"):
        transactions(10.5)


# ------------------------------------------------------------------------------- the command


def test_the_command_writes_the_tables_and_overwrites_only_when_told(tmp_path):
    def call(*words):
        return CliRunner().invoke(app, ["datasets", *words])

    folder = tmp_path / "bank"
    words = ("transactions", "-o", str(folder), "--set", "n=50", "--set", "n_payments=100")
    told = call(*words)
    assert told.exit_code == 0, told.output
    assert "accounts" in told.stdout
    assert len((folder / "payments.csv").read_text().splitlines()) == 101
    refused = call(*words)
    assert refused.exit_code == 1
    assert "nodes.csv exists" in " ".join(refused.stderr.split())
    assert call(*words, "--force", "--json").exit_code == 0
    assert "-o" in call("transactions").stderr
    assert "there are 'n'" in call("transactions", "-o", str(folder), "--set", "m=3").stderr
    assert "pegfan datasets transactions -o bank" in " ".join(call("cora", "-o", str(folder)).stderr.split())


# ------------------------------------------------------------------------------- the yardstick


@pytest.fixture(scope="module")
def analyst():
    place = Path(__file__).parents[2] / "benchmarks" / "analyst.py"
    spec = importlib.util.spec_from_file_location("analyst", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_calibration_error_by_hand(analyst):
    truth, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.3, 0.4, 0.6])
    assert analyst.calibration_error(truth, p, groups=2) == pytest.approx((2 * 0.2 + 2 * 0.5) / 4)
    assert analyst.calibration_error(truth, p, groups=4) == pytest.approx((0.1 + 0.3 + 0.6 + 0.4) / 4)


def test_columns_made_by_hand_are_their_definitions(analyst):
    bank = transactions(60, n_payments=200)
    x = analyst.payment_columns(bank, expert=True)
    assert len(x) == 60
    for place in (0, 7, 31):
        own = bank.payments[bank.payments["payee"] == bank.accounts["id"][place]]
        assert x["in_count"][place] == len(own)
        assert x["in_sum"][place] == pytest.approx(own["amount"].sum())
        assert x["in_partners"][place] == own["payer"].nunique()
        if len(own):
            assert x["in_at_night"][place] == pytest.approx((own["time"].dt.hour < 6).mean())
