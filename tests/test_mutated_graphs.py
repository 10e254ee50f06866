"""A few thousand damaged graph files: each is read as a sound graph or refused in one line. `mutated.py` runs more of them."""

import pytest

import mutated


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return mutated.sources(tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("kind", [".npz", ".mtx", ".parquet", ".csv", ".graphml", ".gz"])
def test_damaged_files(tmp_path, files, kind):
    chosen = {name: data for name, data in files.items() if name.endswith(kind)}
    read = 0
    for number, name, data in mutated.mutants(chosen, 600 // len(chosen), seed=21):
        path = tmp_path / name
        path.write_bytes(data)
        assert mutated.faults(path) == "", (number, name)
        read += 1
    assert read >= 400


def test_the_judge_passes_sound_files_and_sees_what_is_wrong(tmp_path, files):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert mutated.faults(tmp_path / name) == ""
    stored = mutated.read_graph(tmp_path / "a.npz")
    for broken in (-1, 99):
        W = stored.W.copy()
        W.indices[0] = broken
        assert mutated._unsound(stored._replace(W=W))
    W = stored.W.copy()
    W.data[0] *= 2
    assert "entry" in mutated._unsound(stored._replace(W=W))
    assert mutated._unsound(stored._replace(ids=stored.ids[:3]))
