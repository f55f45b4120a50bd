"""The campaign itself: what goes wrong in a try is counted, whatever it is, and the next one is made."""

import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from torture import __main__ as command
from torture import campaign
from torture.campaign import Attack, Fault


def of(attempt, **options):
    return Attack("an attack", "nothing breaks", attempt, 6, **options)


def breaks(how):
    def attempt(state, number, draw, folder):
        if number == 2:
            how()

    return attempt


def fail():
    raise Fault("a promise was broken")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (fail, "try 2: a promise was broken"),
        (lambda: [].pop(), "IndexError: pop from empty list"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda: os._exit(7), "exit 7"),
        (lambda: time.sleep(60), "did not end within 1 s"),
        (lambda: bytearray(3 * 2**26), "took 0.19 GB"),
        (lambda: bytearray(2**30), "MemoryError"),
    ],
)
def test_a_fault_is_counted_and_the_other_tries_are_made(tmp_path, how, words):
    seconds = 1 if "within" in words else 60  # taking memory may be slow where others take it, too
    row = campaign.run(of(breaks(how), seconds=seconds, memory=2**27), tmp_path)
    assert row.tries == 6
    assert len(row.faults) == 1
    assert words in row.faults[0]


def test_without_faults_every_try_has_a_folder_of_its_own_and_leaves_none(tmp_path):
    def attempt(state, number, draw, folder):
        assert state == "prepared"
        assert not any(folder.iterdir())
        (folder / "file").touch()

    row = campaign.run(of(attempt, prepare=lambda place: "prepared"), tmp_path)
    assert (row.tries, row.faults) == (6, ())
    assert not list(tmp_path.iterdir())


def test_a_try_can_be_repeated_alone(tmp_path):
    def attempt(state, number, draw, folder):
        raise Fault(str(draw.random()))

    whole = campaign.run(of(attempt), tmp_path, seed=3)
    alone = campaign.run(of(attempt), tmp_path, seed=3, first=4, tries=1)
    assert alone.faults == whole.faults[4:5]
    assert str(random.Random("3/an attack/4").random()) in alone.faults[0]


def test_a_fault_does_not_say_where_it_was_tried(tmp_path):
    def attempt(state, number, draw, folder):
        raise Fault(f"{folder / 'file'} is gone")

    assert campaign.run(of(attempt), tmp_path).faults[0] == f"try 0: {os.path.join('try0', 'file')} is gone"


def test_cases_and_time_end_it(tmp_path):
    listed = of(breaks(fail), cases=lambda state: 4)
    assert campaign.run(listed, tmp_path).tries == 4
    slow = of(lambda *_: time.sleep(0.5))
    assert 1 <= campaign.run(slow, tmp_path, seconds=0.6).tries <= 3


def test_what_cannot_be_prepared_is_a_fault(tmp_path, capfd):
    row = campaign.run(of(breaks(fail), prepare=lambda place: 1 / 0), tmp_path)
    assert (row.tries, row.faults) == (0, ("it could not be prepared",))
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_rows_are_kept_and_shown(tmp_path):
    row = campaign.Row("a", "b", 1200, ("x",), 3.0, 1, "abc")
    campaign.write_rows(tmp_path / "rows.jsonl", {"a": row})
    assert campaign.read_rows(tmp_path / "rows.jsonl") == {"a": row}
    assert "| a | 1,200 | 1 | 3 | 1 | abc |" in campaign.table([row])


ATTACKS = command.load()


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_finds_a_fault_at_once(tmp_path, name):
    """A try or two of each; `make torture` has the thousands."""
    # By command: what was forked off a process that has used its threads may wait for them for ever.
    words = [sys.executable, "-m", "torture", "--only", name, "--tries", "2", "--seed", "1", "--place", str(tmp_path)]
    done = subprocess.run(words, cwd=command.ROOT / "tests", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = int(re.search(rf"{re.escape(name)}: (\d+) tries, 0 faults", done.stdout)[1])
    assert made == 2 or (made and ATTACKS[name].cases is not None)


def test_an_attack_is_chosen_by_its_name_or_by_a_part_of_it(capsys):
    assert command.main(["--list", "--only", "kill -9: train"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert command.main(["--list", "--only", "kill -9: tr"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_command_lists_attacks_and_refuses_others(capsys):
    assert command.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ATTACKS)
    with pytest.raises(SystemExit):
        command.main(["--only", "no such thing"])


def test_the_page_has_a_place_for_the_table():
    assert [command.PAGE.read_text().count(mark) for mark in command.MARKS] == [1, 1]
