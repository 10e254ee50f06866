"""Files that are whole or not there: whatever happens to the process, the disk, the folder, or beside it."""

import errno
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from smoothgraph import files
from smoothgraph.files import check_output, existing, remove_unfinished, replacing

is_root = hasattr(os, "geteuid") and os.geteuid() == 0


def write(path, text="new"):
    with replacing(path) as unfinished:
        unfinished.write_text(text)


def test_many_writers_and_a_reader_that_sees_only_whole_files(tmp_path):
    """Each writer writes its own letter a hundred thousand times, in pieces."""
    path, errors, done = tmp_path / "a.txt", [], threading.Event()
    write(path, "z" * 100_000)

    def writer(letter):
        try:
            for _ in range(15):
                with replacing(path) as unfinished, open(unfinished, "w") as file:
                    for _ in range(100):
                        file.write(letter * 1000)
                        file.flush()
        except BaseException as error:
            errors.append(error)

    def reader():
        while not done.is_set():
            text = path.read_text()
            if len(text) != 100_000 or len(set(text)) != 1:
                errors.append(text[:20])

    threads = [threading.Thread(target=writer, args=(letter,)) for letter in "abcd"]
    watching = threading.Thread(target=reader)
    for thread in [watching, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watching.join()
    assert errors == []
    assert list(tmp_path.iterdir()) == [path]


def test_the_names_of_unfinished_files_cannot_be_guessed(tmp_path):
    seen = set()
    for _ in range(3):
        with replacing(tmp_path / "a.npz") as unfinished:
            seen.add(unfinished.parent.name)
            assert unfinished.suffix == ".npz"
            assert stat.S_IMODE(unfinished.parent.stat().st_mode) == 0o700  # nobody can plant a link in it
            unfinished.write_text("x")
    assert len(seen) == 3


def test_the_mode_stays_and_a_new_file_has_that_of_the_umask(tmp_path):
    path = tmp_path / "a.txt"
    before = os.umask(0o027)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write(path, "again")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.read_text() == "again"


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, exists):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target.dat", tmp_path / "link.txt"
    if exists:
        target.write_text("old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not target.is_symlink()
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["far", "link.txt", "target.dat"]


def test_what_cannot_be_replaced_is_refused_in_one_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("precious")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="is read-only: name another file"):
        write(path)
    assert path.read_text() == "precious"
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write(tmp_path)
    with pytest.raises(FileNotFoundError, match="make it first"):
        write(tmp_path / "no" / "a.txt")
    with pytest.raises(OSError, match="too long"):
        write(tmp_path / ("x" * 300))
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="a pipe or a device"):
        write(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="a pipe or a device"):
        existing(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="a pipe or a device"):
        write("/dev/null")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match=r"loop|levels"):
        write(tmp_path / "loop")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "loop", "pipe.csv"]


def test_the_current_folder_may_be_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError, match=r"a\.txt cannot be written: the current folder was deleted"):
        write("a.txt")
    write(tmp_path / "a.txt")


@pytest.mark.skipif(is_root, reason="root may write to any folder")
def test_a_folder_that_cannot_be_written_to(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(PermissionError, match="cannot be written to"):
        write(tmp_path / "a.txt")
    tmp_path.chmod(0o755)


def test_errors_of_the_system_name_the_file_and_nothing_is_lost(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match=r"a.txt was not written, and nothing was changed: No space") as caught, replacing(path):
        raise OSError(errno.ENOSPC, "No space\nleft", "/somewhere/else")
    assert caught.value.errno == errno.ENOSPC
    assert "\n" not in str(caught.value)
    with pytest.raises(OSError, match=r"was not written.*: Can't write data"), replacing(path):
        raise OSError("Can't write data\nbecause of this\nand that")

    def interrupted(unfinished):
        unfinished.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replacing(path) as unfinished:
        interrupted(unfinished)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_vanishes_while_a_file_is_written(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()

    def vanishing(unfinished):
        unfinished.parent.rmdir()
        folder.rmdir()
        unfinished.write_text("x")

    with pytest.raises(FileNotFoundError, match=r"a.txt was not written"), replacing(folder / "a.txt") as unfinished:
        vanishing(unfinished)


def test_a_full_disk(tmp_path):
    """A limit on the size of files stands for a full disk: both end in an error of write()."""
    code = """
import resource, signal, sys, numpy as np, scipy.sparse as sp
from smoothgraph.io import write_graph
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
A = np.random.default_rng(0).random((100, 100))
W = sp.csr_matrix(A + A.T)
for kind in ("npz", "parquet", "csv", "graphml"):
    try:
        write_graph(f"g.{kind}", W)
    except OSError as error:
        print(str(error).count("\\n"), "was not written" in str(error))
"""
    (tmp_path / "g.csv").write_text("old")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["0 True"] * 4, done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["g.csv"]
    assert (tmp_path / "g.csv").read_text() == "old"


UNENDING = """
import sys, time
from smoothgraph.files import replacing
with replacing(sys.argv[1]) as unfinished:
    unfinished.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def begun(path):
    """A process that has written half of a file."""
    process = subprocess.Popen([sys.executable, "-c", UNENDING, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    return process


def test_the_next_write_removes_what_a_killed_run_left_and_leaves_what_is_in_use(tmp_path):
    killed, alive = begun(tmp_path / "a.txt"), begun(tmp_path / "b.txt")
    with alive, killed:
        killed.kill()
        killed.wait()
        (tmp_path / (files.UNFINISHED + "mine")).symlink_to(tmp_path)  # a link is not followed, nor taken for a folder
        assert len(list(tmp_path.iterdir())) == 3
        write(tmp_path / "c.txt")
        left = [p for p in tmp_path.iterdir() if p.name.startswith(files.UNFINISHED) and not p.is_symlink()]
        assert [[p.name for p in folder.iterdir()] for folder in left] == [["b.txt"]]
        assert (tmp_path / "c.txt").read_text() == "new"
        alive.kill()


def test_a_handler_of_signals_removes_what_is_unfinished(tmp_path):
    def ended(unfinished):
        unfinished.write_text("half")
        remove_unfinished()
        assert list(tmp_path.iterdir()) == []

    with pytest.raises(FileNotFoundError), replacing(tmp_path / "a.txt") as unfinished:
        ended(unfinished)
    write(tmp_path / "a.txt")
    remove_unfinished()
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_does_not_remove_what_its_parent_writes(tmp_path):
    code = f"""
import os
from smoothgraph.files import remove_unfinished, replacing
with replacing({str(tmp_path / "a.txt")!r}) as unfinished:
    unfinished.write_text("whole")
    if os.fork() == 0:
        remove_unfinished()
        os._exit(0)
    os.wait()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_an_output_is_none_of_the_inputs_under_whatever_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.csv"
    path.write_text("x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "soft.csv").symlink_to(path)
    os.link(path, tmp_path / "hard.csv")
    for other in (path, "a.csv", "./a.csv", "sub/../a.csv", "soft.csv", tmp_path / "hard.csv"):
        with pytest.raises(ValueError, match=r"also an input.*give the output another name"):
            check_output(path, [None, other])
        with pytest.raises(ValueError, match="also an input"):
            check_output(other, [path])
    check_output("new.csv", [path, None])
    check_output("new.csv", ["neither.csv"])
    check_output("soft.png", [path])


def test_files_reach_the_disk_before_they_get_their_name(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: (order.append("dir" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"), fsync(handle))
    )
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("rename"), replace(a, b)))
    write(tmp_path / "a.txt")
    assert order == ["file", "rename", "dir"]


def test_upper_case_and_links_to_other_kinds_of_names(tmp_path):
    from smoothgraph.io import read_graph, write_graph

    W = np.ones((3, 3)) - np.eye(3)
    write_graph(tmp_path / "G.NPZ", W)
    assert read_graph(tmp_path / "G.NPZ").W.nnz == 6
    (tmp_path / "link.npz").symlink_to(tmp_path / "store.dat")
    write_graph(tmp_path / "link.npz", W)
    assert read_graph(tmp_path / "link.npz").W.nnz == 6
    assert sorted(p.name for p in tmp_path.iterdir()) == ["G.NPZ", "link.npz", "store.dat"]


@pytest.mark.parametrize(
    "command",
    [
        "convert g.csv g.csv",
        "convert g.csv ./g.csv",
        "convert g.csv link.csv",
        "convert link.csv g.csv",
        "embed g.csv -o g.csv",
        "embed g.csv -o hard.csv",
        "propagate g.csv labels.csv -o g.csv",
        "propagate g.csv labels.csv -o labels.csv",
    ],
)
def test_no_command_replaces_its_input(tmp_path, monkeypatch, capsys, command):
    from smoothgraph.__main__ import main
    from smoothgraph.io import write_graph

    monkeypatch.chdir(tmp_path)
    write_graph("g.csv", np.ones((3, 3)) - np.eye(3))
    (tmp_path / "labels.csv").write_text("id,label\n0,a\n")
    (tmp_path / "link.csv").symlink_to("g.csv")
    os.link("g.csv", "hard.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 1
    assert "is also an input" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
