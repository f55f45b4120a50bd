"""An invented bank: accounts, payments and devices as an analyst has them, with rings of fraud that are known.

Numbers come from integers, sums, products and square roots of uniform draws, which are the same on every machine;
logarithms and powers, which are not, are left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._atomic import replacing
from pegfan._checks import check_integer, check_kind, check_path, shown

if TYPE_CHECKING:
    import pandas as pd

BoolArray = NDArray[np.bool_]

LIMIT = 1000.0
"""Payments of this amount or more are looked at, so those who split sums stay just below it."""

FILES = ("nodes.csv", "payments.csv", "devices.csv")
"""What `Transactions.write` writes: accounts, payments, devices."""

_FIRST_DAY, _DAYS = "2024-01-01", 364
_OPENED_FROM, _OPENED_DAYS = "2010-01-01", 5113
_HOURS = (1, 1, 1, 1, 1, 2, 4, 8, 10, 10, 9, 9, 10, 9, 8, 8, 9, 10, 10, 9, 7, 5, 3, 2)
"""How often people pay, by the hour."""
_COMMUNITY = 60
"""Accounts that mostly pay each other, on average."""


class _Category(NamedTuple):
    """Words, how often each occurs, and how often among the traces of fraud."""

    words: tuple[str, ...]
    usual: tuple[int, ...]
    traced: tuple[int, ...]


_COUNTRY = _Category(("DE", "FR", "NL", "PL", "IT", "ES", "LT", "CY"), (30, 18, 14, 12, 12, 10, 2, 2), (*[1] * 6, 4, 4))
_SEGMENT = _Category(("private", "student", "business", "premium"), (60, 18, 14, 8), (6, 10, 4, 1))
_CHANNEL = _Category(("branch", "web", "app", "partner"), (30, 34, 30, 6), (1, 4, 8, 5))
_PURPOSE = _Category(("goods", "transfer", "bill", "rent", "salary", "cash"), (46, 24, 14, 5, 5, 6), (1, 8, 1, 0, 0, 4))
_TYPICAL = np.array([25.0, 60.0, 80.0, 500.0, 1000.0, 90.0])
"""The scale of amounts, by purpose."""
_NOTES = _Category(
    (
        "",
        "asked for a second card",
        "moved, new address on file",
        "called about fees",
        "prefers letters",
        "address not confirmed",
        "asked how limits work, twice",
        'says "a friend" opened it',
    ),
    (40, 14, 12, 14, 10, 4, 4, 2),
    (20, 6, 6, 4, 2, 10, 10, 8),
)
"""Sentences of notes; two of them and a number of the call make one."""


@dataclass(frozen=True, eq=False)
class Transactions:
    """Tables of an invented bank, and the truth about them.

    Attributes
    ----------
    accounts : pandas.DataFrame
        One row per account: ``id`` (text with leading zeros), ``country``, ``segment``, ``channel``, ``age`` and
        ``income`` (with gaps), ``balance`` (heavy-tailed, with gaps), ``verified``, ``newsletter``, ``opened``,
        ``note`` (free text) and ``fraud`` (yes, no, or missing where it is not known).
    payments : pandas.DataFrame
        One row per payment, by time: ``payer``, ``payee``, ``amount`` (heavy-tailed), ``time``, ``purpose``.
    devices : pandas.DataFrame
        One row per account and device that it was used from: ``account``, ``device``, ``logins``.
    truth : bool array
        Which accounts are frauds, labelled or not.
    labelled : bool array
        For which accounts that is known.
    ring : int array
        The ring that an account belongs to; -1 for honest ones.
    """

    accounts: pd.DataFrame
    payments: pd.DataFrame
    devices: pd.DataFrame
    truth: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    ring: IntArray

    def __repr__(self) -> str:
        return (
            f"Transactions(accounts={len(self.accounts)}, payments={len(self.payments)}, devices={len(self.devices)}, "
            f"frauds={int(self.truth.sum())}, labelled={int(self.labelled.sum())})"
        )

    def write(self, folder: str | os.PathLike[str], date_format: str = "%Y-%m-%d") -> tuple[Path, Path, Path]:
        """Write the tables as nodes.csv, payments.csv and devices.csv, and return their paths.

        Parameters
        ----------
        folder
            Made if it is not there; files of these names in it are replaced.
        date_format
            How dates are written; ``"%d.%m.%Y"`` gives 04.07.2015. Times follow it as hours, minutes and seconds.
        """
        home = check_path(folder, "folder")
        check_kind(date_format, "date_format", str)
        home.mkdir(parents=True, exist_ok=True)
        for name, table in zip(FILES, (self.accounts, self.payments, self.devices), strict=True):
            dates = {"opened": date_format, "time": f"{date_format} %H:%M:%S"}
            texts = {column: table[column].dt.strftime(dates[column]) for column in dates if column in table}
            with replacing(home / name) as file:
                table.assign(**texts).to_csv(file, index=False, lineterminator="\n", encoding="utf-8", mode="wb")
        accounts, payments, devices = (home / name for name in FILES)
        return accounts, payments, devices


def transactions(
    n: int = 20_000,
    *,
    n_payments: int = 60_000,
    fraud: float = 0.03,
    labelled: float = 0.5,
    in_columns: float = 0.5,
    in_amounts: float = 0.6,
    in_times: float = 0.6,
    in_structure: float = 0.6,
    in_devices: float = 0.6,
    seed: int = 0,
) -> Transactions:
    """Make the tables of an invented bank: accounts, payments between them, devices; some accounts are frauds.

    Frauds work in rings of four to nine. What gives them away is set one by one from 0 (they are like everybody in
    this) to 1; some rings hide better than others. Honest accounts have the same habits here and there: some pay at
    night, in bursts or just below the limit of 1,000, some are clubs whose members pay each other, families share
    devices. Who does so has nothing to do with fraud.

    Parameters
    ----------
    n, n_payments
        Numbers of accounts and of payments.
    fraud
        The share of accounts that are frauds.
    labelled
        The share of accounts, and of frauds, for which it is known.
    in_columns
        How much is in the columns of accounts and in the purposes of payments: rarer countries, opened of late, not
        verified, gaps, words of the note. The trace is weak even at 1.
    in_amounts
        In amounts: payments of the ring stay just below the limit, and what is collected is paid out again in equal
        parts.
    in_times
        In times: payments of the ring fall on a few nights.
    in_structure
        In who pays whom: members pay in a circle, to one who collects, or from one half to the other; strangers pay
        the one who collects.
    in_devices
        In shared devices.
    seed
        Of everything that is drawn; the same on any machine.

    Returns
    -------
    Transactions

    Examples
    --------
    >>> import pegfan as pf
    >>> bank = pf.datasets.transactions(2000, n_payments=6000)
    >>> bank
    Transactions(accounts=2000, payments=6000, devices=..., frauds=60, labelled=1000)
    >>> bank.accounts["fraud"].value_counts().to_dict()  # of the labelled ones
    {'no': 970, 'yes': 30}
    """
    check_integer(n, "n", least=2)
    for name, value in {"n_payments": n_payments, "seed": seed}.items():
        check_integer(value, name, least=0)
    shares = {"fraud": fraud, "labelled": labelled}
    dials = {"columns": in_columns, "amounts": in_amounts, "times": in_times}
    dials |= {"structure": in_structure, "devices": in_devices}
    for name, share in (shares | {f"in_{name}": dial for name, dial in dials.items()}).items():
        _check_share(share, name)
    of = _streams(seed)
    groups = _Groups.draw(n, round(fraud * n), dials, of["rings"])
    clubs = _Groups.draw(n, round(0.03 * n), {"structure": 0.7}, of["clubs"])
    truth = groups.of >= 0
    known = _labelled(truth, labelled, of["labels"])
    ids = _ids(n, of["ids"])
    community = of["communities"].integers(max(n // _COMMUNITY, 1), size=n)
    return Transactions(
        accounts=_accounts(ids, community, groups, truth, known, of["columns"]),
        payments=_payments(ids, community, groups, clubs, n_payments, of),
        devices=_devices(ids, community, groups, of["devices"]),
        truth=truth,
        labelled=known,
        ring=groups.of,
    )


_STREAMS = (
    *("rings", "clubs", "labels", "ids", "communities", "columns"),
    *("partners", "structure", "purposes", "amounts", "times", "devices"),
)


def _streams(seed: int) -> dict[str, np.random.Generator]:
    """One generator per purpose, so that turning one dial leaves the rest of the tables as they are."""
    children = np.random.SeedSequence(seed).spawn(len(_STREAMS))
    return {name: np.random.default_rng(child) for name, child in zip(_STREAMS, children, strict=True)}


# ------------------------------------------------------------------ rings and clubs


class _Groups(NamedTuple):
    """Accounts that act together.

    `of` is the group of every account (-1: none), `rank` its place in it; `members` lists the accounts by group and
    rank, `first` where a group starts there, `size` its size, `kind` how it pays; `strength` holds for every dial how
    much of it a group shows.
    """

    of: IntArray
    rank: IntArray
    members: IntArray
    first: IntArray
    size: IntArray
    kind: IntArray
    strength: dict[str, FloatArray]

    @classmethod
    def draw(cls, n: int, count: int, dials: dict[str, float], rng: np.random.Generator) -> _Groups:
        members = rng.permutation(n)[:count]
        ends = np.cumsum(rng.integers(4, 10, size=count // 4 + 1))
        ends = ends[ends <= count - 3]  # who is left over is of the last group, or at least a trio
        ends = np.append(ends, count) if count else ends[:0]
        first = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if count else ends
        size = ends - first
        of, rank = np.full(n, -1), np.zeros(n, np.int64)
        of[members] = np.repeat(np.arange(len(size)), size)
        rank[members] = np.arange(count) - np.repeat(first, size)
        kind = rng.integers(3, size=len(size))
        strength = {name: dial * (0.4 + 0.6 * rng.random(len(size))) for name, dial in dials.items()}
        strength["structure"][size == 1] = 0.0  # one alone has nobody to pay
        return cls(of, rank, members, first, size, kind, strength)

    def shows(self, accounts: IntArray, dial: str, u: FloatArray) -> BoolArray:
        """Which accounts show a trace; honest ones never."""
        group = self.of[accounts]
        if not len(self.size):
            return np.zeros(len(accounts), bool)
        return (group >= 0) & (u < self.strength[dial][group])

    def partner(self, accounts: IntArray, u: FloatArray) -> IntArray:
        """Whom a member pays: the next in a circle, the one who collects (who pays any other), or the other half."""
        group, rank = self.of[accounts], self.rank[accounts]
        size, kind = self.size[group], self.kind[group]
        half = (size + 1) // 2
        collects = np.where(rank == 0, 1 + _below(u, size - 1), 0)
        layers = np.where(rank < half, half + _below(u, size - half), _below(u, half))
        to = np.where(kind == 0, (rank + 1) % size, np.where(kind == 1, collects, layers))
        return self.members[self.first[group] + to]


def _labelled(truth: BoolArray, share: float, rng: np.random.Generator) -> BoolArray:
    """The same share of frauds and of others."""
    known = np.zeros(len(truth), bool)
    for group in (np.flatnonzero(truth), np.flatnonzero(~truth)):
        known[rng.permutation(group)[: round(share * len(group))]] = True
    return known


# ------------------------------------------------------------------------ accounts


def _accounts(
    ids: Any, community: IntArray, groups: _Groups, truth: BoolArray, known: BoolArray, rng: np.random.Generator
) -> pd.DataFrame:
    import pandas as pd

    n = len(truth)
    everyone = np.arange(n)

    def traced() -> BoolArray:
        """Which accounts show a trace in one column: about a third of those that could."""
        return groups.shows(everyone, "columns", 3.0 * rng.random(n))

    # Neighbours are mostly of one country: it is drawn for a community, and for one account in four anew.
    local = _draw(_COUNTRY.usual, rng.random(int(community.max()) + 1))[community]
    usual = np.where(rng.random(n) < 0.25, _draw(_COUNTRY.usual, rng.random(n)), local)
    country = np.where(traced(), _draw(_COUNTRY.traced, rng.random(n)), usual)
    segment, channel = (_words(words, traced(), rng) for words in (_SEGMENT, _CHANNEL))
    note = _notes(_words(_NOTES, traced(), rng), _words(_NOTES, traced(), rng), _below(rng.random(n), 90_000))
    age = 18 + _below(rng.random(n), 45) + _below(rng.random(n), 30)
    no_age = rng.random(n) < np.where(traced(), 0.5, 0.12)
    income = np.floor(900.0 + 1500.0 * _tail(rng.random(n)) * (0.5 + rng.random(n)))
    no_income = rng.random(n) < np.where(traced(), 0.6, 0.2)
    balance = 100.0 * _tail(rng.random(n)) * _tail(rng.random(n)) * rng.random(n)
    balance = np.where(traced(), 0.1, np.where(rng.random(n) < 0.06, -0.3, 1.0)) * balance
    no_balance = rng.random(n) < 0.05
    verified = rng.random(n) < np.where(traced(), 0.5, 0.9)
    newsletter = rng.random(n) < 0.3
    day = np.where(traced(), _OPENED_DAYS - 1 - _below(rng.random(n), 200), _below(rng.random(n), _OPENED_DAYS))
    answer = np.where(truth, "yes", "no").astype(object)
    answer[~known] = None
    return pd.DataFrame(
        {
            "id": ids,
            "country": np.array(_COUNTRY.words, object)[country],
            "segment": segment,
            "channel": channel,
            "age": pd.arrays.IntegerArray(age, no_age),
            "income": np.where(no_income, np.nan, income),
            "balance": np.where(no_balance, np.nan, np.floor(100.0 * balance) / 100.0),
            "verified": verified,
            "newsletter": newsletter,
            "opened": np.datetime64(_OPENED_FROM, "s") + day.astype("timedelta64[D]"),
            "note": note,
            "fraud": answer,
        }
    )


def _words(category: _Category, traced: BoolArray, rng: np.random.Generator) -> Any:
    u = rng.random(len(traced))
    codes = np.where(traced, _draw(category.traced, u), _draw(category.usual, u))
    return np.array(category.words, object)[codes]


def _notes(first: Any, second: Any, call: IntArray) -> list[str]:
    told = zip(first, second, (10_000 + call).tolist(), strict=True)
    return ["; ".join(filter(None, (a, b, f"call {number}"))) if a or b else "" for a, b, number in told]


# ------------------------------------------------------------------------ payments


def _payments(
    ids: Any,
    community: IntArray,
    rings: _Groups,
    clubs: _Groups,
    count: int,
    of: dict[str, np.random.Generator],
) -> pd.DataFrame:
    import pandas as pd

    payer, payee = _partners(community, count, of["partners"])
    payer, payee, ring = _structured(payer, payee, rings, clubs, of["structure"])
    shown, purpose = _purposes(ring, rings, of["purposes"])
    cents = _amounts(payer, payee, ring, purpose, rings, of["amounts"])
    time = _times(payer, ring, rings, len(community), of["times"])
    order = np.argsort(time, kind="stable")
    return pd.DataFrame(
        {
            "payer": ids.take(payer[order]),
            "payee": ids.take(payee[order]),
            "amount": cents[order] / 100.0,
            "time": np.datetime64(_FIRST_DAY, "s") + time[order].astype("timedelta64[s]"),
            "purpose": np.array(_PURPOSE.words, object)[shown[order]],
        }
    )


def _partners(community: IntArray, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Payers by how active they are; payees by how popular, three of four in the payer's community."""
    n = len(community)
    active = _Lottery.of(np.floor(10.0 * _tail(rng.random(n))), np.zeros(n, np.int64))
    popular = np.floor(4.0 * _tail(rng.random(n)) * _tail(rng.random(n)))
    near, far = _Lottery.of(popular, community), _Lottery.of(popular, np.zeros(n, np.int64))
    payer = active.draw(np.zeros(count, np.int64), rng.random(count))
    u, local = rng.random(count), rng.random(count) < 0.75
    payee = np.where(local, near.draw(community[payer], u), far.draw(np.zeros(count, np.int64), u))
    return payer, np.where(payee == payer, (payee + 1 + _below(rng.random(count), n - 1)) % n, payee)


def _structured(
    payer: IntArray, payee: IntArray, rings: _Groups, clubs: _Groups, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Payments with those of clubs and rings among them, and the ring that each payment serves, or -1."""
    count, payee = len(payer), payee.copy()
    for groups in (clubs, rings):
        serves = (groups.of[payer] >= 0) & (rng.random(count) < 0.7)
        within = np.flatnonzero(serves & groups.shows(payer, "structure", rng.random(count)))
        payee[within] = groups.partner(payer[within], rng.random(len(within)))
    ring = np.where(serves, rings.of[payer], -1)
    # Strangers pay into the ring: two such payments for five inside it, and as a rule to the member who collects.
    u, which, whom = rng.random((3, count))
    strangers = np.flatnonzero((rings.of[payer] < 0) & (u * count < 0.4 * len(within))) if len(within) else within
    paid = rings.of[payer[within]][_below(which[strangers], len(within))] if len(within) else within
    rank = np.where(rings.kind[paid] == 1, 0, _below(whom[strangers], rings.size[paid]))
    payee[strangers] = rings.members[rings.first[paid] + rank]
    received = (ring < 0) & (rings.of[payee] >= 0) & (rng.random(count) < 0.5)
    received[strangers] = True
    return payer, payee, np.where(received, rings.of[payee], ring)


def _traced(ring: IntArray, rings: _Groups, dial: str, u: FloatArray) -> BoolArray:
    """Which payments of rings show a trace."""
    if not len(rings.size):
        return np.zeros(len(ring), bool)
    return (ring >= 0) & (u < rings.strength[dial][ring])


def _purposes(ring: IntArray, rings: _Groups, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """The purposes that are stated, and the true ones, by which amounts are drawn."""
    u, v = rng.random((2, len(ring)))
    usual = _draw(_PURPOSE.usual, v)
    return np.where(_traced(ring, rings, "columns", 3.0 * u), _draw(_PURPOSE.traced, v), usual), usual


def _amounts(
    payer: IntArray, payee: IntArray, ring: IntArray, purpose: IntArray, rings: _Groups, rng: np.random.Generator
) -> IntArray:
    """Amounts in cents, whole numbers, so that sums are exact."""
    count, n = len(payer), len(rings.of)
    level, splits = _tail(rng.random(n)), rng.random(n) < 0.06
    u, v, w, x = rng.random((4, count))
    usual = _TYPICAL[purpose] * level[payer] * (0.2 + u) * np.sqrt(_tail(v))
    below = LIMIT * (0.88 + 0.119 * u)
    traced = _traced(ring, rings, "amounts", w)
    amounts = np.where(traced | (splits[payer] & (x < 0.35)), below, usual)
    cents: IntArray = np.maximum(np.floor(100.0 * amounts).astype(np.int64), 1)
    if not len(rings.size):
        return cents
    collector = rings.members[rings.first]
    into, out = (traced & (who == collector[ring]) for who in (payee, payer))
    total = np.bincount(ring[into], cents[into], len(collector)).astype(np.int64)
    parts = np.bincount(ring[out], minlength=len(collector))
    paid_out = out & (total[ring] > 0)
    cents[paid_out] = (97 * total // (100 * np.maximum(parts, 1)))[ring[paid_out]]
    return cents


def _times(payer: IntArray, ring: IntArray, rings: _Groups, n: int, rng: np.random.Generator) -> IntArray:
    """Seconds since the first day."""
    count = len(payer)
    late, bursty = rng.random((2, n)) < 0.08
    own_day = _below(rng.random(n), _DAYS - 3)
    ring_day = _below(rng.random(len(rings.size)), _DAYS - 3)
    u, v, w, x, y, z = rng.random((6, count))
    traced = _traced(ring, rings, "times", w)
    few = _below(u, 3)
    day = np.where(bursty[payer] & (x < 0.6), own_day[payer] + few, _below(u, _DAYS))
    hour = np.where(late[payer] & (y < 0.5), _below(v, 5), _draw(_HOURS, v))
    if len(rings.size):
        day = np.where(traced, ring_day[ring] + few, day)
    hour = np.where(traced, _below(v, 5), hour)
    seconds: IntArray = (day * 24 + hour) * 3600 + _below(z, 3600)
    return seconds


# ------------------------------------------------------------------------- devices


def _devices(ids: Any, community: IntArray, rings: _Groups, rng: np.random.Generator) -> pd.DataFrame:
    """Accounts have one to three devices; some are a relative's, and those of a ring are shared."""
    import pandas as pd

    n = len(community)
    u = rng.random(n)
    account = np.repeat(np.arange(n), 1 + (u < 0.5) + (u < 0.15))
    count = len(account)
    relatives = _Lottery.of(np.ones(n), community)
    own = 2 * len(rings.size) + np.arange(count)
    first = np.searchsorted(account, np.arange(n))
    relative = own[first[relatives.draw(community[account], rng.random(count))]]
    device = np.where(rng.random(count) < 0.1, relative, own)
    shares, which = rings.shows(account, "devices", rng.random(count)), _below(rng.random(count), 2)
    device = np.where(shares, 2 * rings.of[account] + which, device)
    logins = np.floor(5.0 * _tail(rng.random(count)) * (0.2 + rng.random(count))).astype(np.int64) + 1
    _, rows = np.unique(account * (count + 2 * len(rings.size)) + device, return_index=True)  # a device counts once
    _, names = np.unique(device[rows], return_inverse=True)
    called = np.array([f"dev-{number:07x}" for number in rng.choice(16**7, names.max() + 1, replace=False)], object)
    return pd.DataFrame({"account": ids.take(account[rows]), "device": called[names], "logins": logins[rows]})


# ------------------------------------------------------------------- exact draws


class _Lottery(NamedTuple):
    """Draws members of groups by their whole-numbered weights."""

    members: IntArray
    until: Any
    start: Any
    total: Any

    @classmethod
    def of(cls, weights: FloatArray, group: IntArray) -> _Lottery:
        members = np.argsort(group, kind="stable")
        total = np.bincount(group, weights)
        return cls(members, np.cumsum(weights[members]), np.cumsum(total) - total, total)

    def draw(self, group: IntArray, u: FloatArray) -> IntArray:
        place = np.searchsorted(self.until, self.start[group] + np.floor(u * self.total[group]), side="right")
        drawn: IntArray = self.members[place]
        return drawn


def _ids(n: int, rng: np.random.Generator) -> Any:
    """Numbers as text, all of one length, so that one in ten starts with a zero."""
    import pandas as pd

    digits = max(7, len(str(10 * n)))
    return pd.Series([f"{number:0{digits}d}" for number in rng.choice(10**digits, n, replace=False)]).array


def _below(u: FloatArray, k: Any) -> IntArray:
    """Whole numbers below k from numbers below 1."""
    whole: IntArray = np.floor(u * k).astype(np.int64)
    return whole


def _tail(u: FloatArray) -> FloatArray:
    """Pareto's law with exponent 2, from 1 to 50."""
    return 1.0 / np.sqrt(np.maximum(1.0 - u, 0.0004))


def _draw(weights: tuple[int, ...], u: FloatArray) -> IntArray:
    """Numbers from 0 on, as often as their weights say."""
    until = np.cumsum(weights)
    drawn: IntArray = np.searchsorted(until, np.floor(u * until[-1]), side="right")
    return drawn


def _check_share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
