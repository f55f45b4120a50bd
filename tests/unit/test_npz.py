"""Archives from outside are hostile: nothing is unpickled, nothing larger than declared is read."""

import io
import pickle
import zipfile

import numpy as np
import pytest

from pegfan import Hierarchy
from pegfan._npz import read_npz, write_npz


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name + ".npy", data)
    return path


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def test_round_trip(tmp_path):
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "f": np.asfortranarray(np.eye(3)),
        "s": np.array(["x", "yy"]),
        "e": np.empty((0, 2)),
    }
    back = read_npz(write_npz(tmp_path / "x.npz", arrays))
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype
        assert back[name].flags.writeable


def test_numpy_reads_what_we_write(tmp_path):
    path = write_npz(tmp_path / "x.npz", {"a": np.arange(3)})
    with np.load(path) as file:
        assert file["a"].tolist() == [0, 1, 2]


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_pickles_are_refused_not_run(tmp_path):
    hostile = np.empty(1, object)
    hostile[0] = Bomb()
    path = archive(tmp_path / "x.npz", order=npy(hostile))
    with pytest.raises(ValueError, match=r"'order\.npy'.*pickled"):
        read_npz(path)
    (tmp_path / "raw.npz").write_bytes(pickle.dumps(Bomb()))
    for load in (read_npz, Hierarchy.load):
        with pytest.raises(ValueError, match="not a readable npz"):
            load(tmp_path / "raw.npz")


def test_objects_are_not_written(tmp_path):
    with pytest.raises(TypeError, match="'a' holds Python objects"):
        write_npz(tmp_path / "x.npz", {"a": np.array([None])})
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_is_refused_by_its_declared_size(tmp_path):
    path = archive(tmp_path / "x.npz", a=npy(np.zeros(10**6)))
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"arrays of 8,000,128 bytes .* 1\.0 MB are allowed.*--max-bytes"):
        read_npz(path, max_bytes=10**6)


def test_a_header_that_lies_about_its_size_is_refused(tmp_path):
    honest = npy(np.zeros(4))
    for shape in (b"(9,)", b"(3,)"):
        path = archive(tmp_path / "x.npz", a=honest.replace(b"(4,)", shape))
        with pytest.raises(ValueError, match="header claims"):
            read_npz(path)
    huge = honest.replace(b"(4,), }          ", b"(99999999999,), }")
    assert huge != honest
    with pytest.raises(ValueError, match="header claims"):
        read_npz(archive(tmp_path / "x.npz", a=huge))


def test_members_that_are_no_arrays(tmp_path):
    for data in (b"", b"hello", npy(np.zeros(3))[:20]):
        with pytest.raises(ValueError, match="cannot be used"):
            read_npz(archive(tmp_path / "x.npz", a=data))


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "nothing.npz")
