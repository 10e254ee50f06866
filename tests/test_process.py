"""The process of a command: signals, streams that do not work, and errors, each of which ends in one line and an exit code."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from smoothgraph.__main__ import main
from smoothgraph.io import read_graph, write_graph

PROGRAM = [sys.executable, "-m", "smoothgraph"]


def environment(**settings):
    """The environment of a child; settings that are None are taken away."""
    return {name: value for name, value in (os.environ | settings).items() if value is not None}


def run(*arguments, program=PROGRAM, **options):
    """(exit code, stdout, stderr) of a command in a process of its own, as bytes."""
    settings = {"env": environment(**options.pop("env", {}))}
    if "stdout" not in options:
        options["stdout"] = subprocess.PIPE
    done = subprocess.run([*program, *map(str, arguments)], stderr=subprocess.PIPE, timeout=300, **settings, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def files(tmp_path, rng):
    """A table with a Greek column, and a graph with metadata, both small."""
    pd.DataFrame(rng.normal(size=(40, 2)), columns=["θ₁", "b"]).to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(SystemExit):
        main(["learn", str(tmp_path / "table.csv"), "-k", "4", "-q", "-o", str(tmp_path / "graph.npz")])
    return tmp_path


# --- signals ---


BUSY = """
import sys, time
from smoothgraph import files, signals
from smoothgraph.files import replacing
def work():
{work}
signals.run(work)
"""
COMPILED_LOOP = """
    from numba import njit
    @njit(nogil=True)
    def spin(n):
        total = 0.0
        for i in range(n):
            total += (i % 7) ** 0.5
        return total
    spin(1)
    print("ready", flush=True)
    spin(10**15)
"""
WRITING = """
    with replacing(sys.argv[1]) as unfinished:
        unfinished.write_text("half of the n")
        print("ready", flush=True)
        time.sleep(1000)
"""
HANGING = """
    def hang():
        print("hanging", flush=True)
        time.sleep(1000)
    signals.remove_unfinished = hang
    print("ready", flush=True)
    time.sleep(1000)
"""


def start(script, *arguments, **options):
    """A child that has printed that it is ready."""
    child = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    assert child.stdout.readline() == b"ready\n", child.stderr.read()
    return child


def ended(child):
    """(exit code, stderr)."""
    try:
        _, told = child.communicate(timeout=60)
    finally:
        child.kill()
    return child.returncode, told


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (signal.SIGINT, b"smoothgraph: interrupted\n"),
        (signal.SIGTERM, b"smoothgraph: terminated\n"),
        (signal.SIGHUP, b"smoothgraph: the terminal was closed\n"),
    ],
)
def test_a_signal_ends_a_compiled_loop_with_one_line(number, line):
    child = start(BUSY.format(work=COMPILED_LOOP))
    child.send_signal(number)
    assert ended(child) == (128 + number, line)


def test_a_signal_while_compiling(files):
    """A first run says that it compiles, also without a terminal, and can be ended then; there is no part of a graph."""
    cold = environment(NUMBA_CACHE_DIR=str(files / "kernels"))
    command = [*PROGRAM, "learn", files / "table.csv", "-k", "4", "-o", files / "new.npz"]
    child = subprocess.Popen(command, env=cold, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = []
    while not lines or b"compiling the kernels, once" not in lines[-1]:
        lines.append(child.stderr.readline())
        assert lines[-1], lines
    child.send_signal(signal.SIGINT)
    code, told = ended(child)
    assert code == 130
    assert told.splitlines()[-1] == b"smoothgraph: interrupted"
    assert b"Traceback" not in told
    assert sorted(path.name for path in files.iterdir() if path.name != "kernels") == ["graph.npz", "table.csv"]


def test_an_unfinished_file_is_removed_and_the_old_one_stays(tmp_path):
    (tmp_path / "graph.csv").write_text("old")
    child = start(BUSY.format(work=WRITING), tmp_path / "graph.csv")
    child.send_signal(signal.SIGTERM)
    assert ended(child)[0] == 143
    assert [path.name for path in tmp_path.iterdir()] == ["graph.csv"]
    assert (tmp_path / "graph.csv").read_text() == "old"


def test_a_second_signal_ends_what_hangs():
    child = start(BUSY.format(work=HANGING))
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == b"hanging\n"
    child.send_signal(signal.SIGINT)
    assert ended(child)[0] == -signal.SIGINT


def test_nohup_is_respected():
    ignore = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    child = start(BUSY.format(work=COMPILED_LOOP), **ignore)
    child.send_signal(signal.SIGHUP)
    child.send_signal(signal.SIGTERM)
    assert ended(child) == (143, b"smoothgraph: terminated\n")


def test_the_cursor_is_shown_again():
    script = (
        "import time\nfrom smoothgraph import signals\nfrom smoothgraph.cli.report import Progress\n"
        "def work():\n    with Progress() as progress:\n        progress('solve', 'begun')\n        time.sleep(1000)\n"
        "signals.run(work)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-c", script], environment(TERM="xterm"))
    seen = b""
    while b"in this stage" not in seen:
        seen += os.read(terminal, 4096)
    os.kill(pid, signal.SIGTERM)
    while True:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 143
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l") >= 0
    assert seen.endswith(b"smoothgraph: terminated\r\n")


def test_a_program_that_calls_main_keeps_its_own_answers_to_signals(capsys):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    codes = []

    def call():
        with pytest.raises(SystemExit) as end:
            main(["--version"])
        codes.append(end.value.code)

    call()
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert codes == [0, 0]
    assert {number: signal.getsignal(number) for number in before} == before


# --- streams ---


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_encodings_without_greek(files, encoding):
    plain = {"env": {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}}
    for arguments in (["--help"], ["learn", "--help"], ["info", files / "graph.npz"]):
        code, shown, told = run(*arguments, **plain)
        assert (code, told) == (0, b"")
        assert "?" not in shown.decode(encoding).replace("theta?", "")  # a column has a name that no word stands for
    assert b"theta" in shown


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_the_values_of_a_result_stand_below_each_other(files, encoding):
    """Also where θ is spelt out; and no line is filled up with blanks, which a pager would fold."""
    _, shown, _ = run("info", files / "graph.npz", env={"PYTHONIOENCODING": encoding})
    how = shown.decode(encoding).partition("learned by")[2].splitlines()[2:]
    column = how[0].index("(wanted") - len("4.000 ")
    assert any(line.startswith(("θ", "theta")) for line in how)
    for line in how:
        assert line == line.rstrip()
        assert line[column - 2 : column] == "  "
        assert line[column] != " "


def test_a_command_is_not_aborted_by_threads_that_outlive_it(tmp_path):
    """Python's own end takes threads of libraries down in the middle of C++ code, which ends the process by SIGABRT."""
    script = """
import atexit, sys
import smoothgraph.__main__ as program
class Global:
    def __del__(self): print("Python was taken down", flush=True)
last = Global()
atexit.register(print, "tidied up")
sys.argv = ["smoothgraph", "info", "missing.npz"]
program.main()
"""
    code, shown, told = run("-c", script, program=[sys.executable], cwd=tmp_path)
    assert (code, shown) == (1, b"tidied up\n")
    assert told == b"smoothgraph: missing.npz does not exist.\n"


def test_the_help_is_plain_text():
    """Where θ is spelt out after the lines were laid out, they would be too long."""
    from typer.main import get_command

    from smoothgraph.cli import app

    for command in get_command(app).commands.values():
        assert command.help.isascii()
        for parameter in command.params:
            assert parameter.help is None or parameter.help.isascii(), (command.name, parameter.name)


def test_learning_where_neither_greek_nor_progress_can_be_shown(files):
    command = [*PROGRAM, "learn", files / "table.csv", "-k", "4", "-o", files / "new.npz"]
    with open("/dev/full", "wb") as full:
        plain = environment(PYTHONIOENCODING="latin-1")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, env=plain, timeout=300)
    assert done.returncode == 0
    assert b"\ntheta    " in done.stdout
    assert read_graph(files / "new.npz").W.nnz


def test_a_locale_without_an_encoding(files):
    """LC_ALL=C, where Python is forbidden to guess UTF-8."""
    poor = {"env": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": None}}
    for arguments in (["--help"], ["info", files / "graph.npz"], ["info", files / "θ.npz"], ["lern"]):
        code, shown, told = run(*arguments, **poor)
        (shown + told).decode("ascii")
        assert code == {"--help": 0, "info": 0 if "graph" in str(arguments[-1]) else 1, "lern": 2}[arguments[0]]
    code, _, told = run("learn", files / "table.csv", "--columns", "x", "-o", files / "new.npz", **poor)
    assert code == 1
    assert b"no column 'x': the columns are 'theta?', 'b'" in told


def test_json_is_valid_in_every_encoding(tmp_path):
    names = np.array(["θ", "\x1b[31m", "\x9b2J"])
    W = np.ones((3, 3)) - np.eye(3)
    write_graph(tmp_path / "graph.npz", W, ids=names, metadata={"note": "".join(names)})
    for encoding in ("utf-8", "ascii", "cp1252"):
        code, shown, _ = run("info", tmp_path / "graph.npz", "--json", env={"PYTHONIOENCODING": encoding})
        assert code == 0
        assert json.loads(shown.decode(encoding))["metadata"]["note"] == "".join(names)
        assert not set(shown.decode(encoding)) & {"\x1b", "\x9b"}


def test_json_has_no_infinities(tmp_path):
    write_graph(tmp_path / "graph.npz", np.zeros((3, 3)))
    _, shown, _ = run("info", tmp_path / "graph.npz", "--json")

    def refuse(name):
        raise AssertionError(name)

    assert json.loads(shown, parse_constant=refuse)["weight"]["min"] is None


@pytest.mark.parametrize("broken", ["full", "closed", "all closed", "nobody reads"])
@pytest.mark.parametrize("command", ["convert", "info"])
def test_output_that_does_not_work_loses_no_result(files, broken, command):
    """A graph that is written is a success. What could only be printed, and was not, is a failure, unless nobody wants it."""
    arguments = [command, files / "graph.npz", *([files / "new.npz"] if command == "convert" else [])]
    if broken == "full":
        with open("/dev/full", "wb") as full:
            code, _, told = run(*arguments, stdout=full)
    elif broken == "nobody reads":
        reader, writer = os.pipe()
        os.close(reader)
        code, _, told = run(*arguments, stdout=writer)
        os.close(writer)
    else:
        closing = '"$@" >&-' if broken == "closed" else '"$@" <&- >&- 2>&-'
        code, _, told = run(*arguments, program=["sh", "-c", closing, "sh", *PROGRAM])
    assert code == (1 if (broken, command) == ("full", "info") else 0)
    assert b"Traceback" not in told
    assert b"Exception ignored" not in told
    last = told.splitlines()[-1] if told else b""
    assert (b"No space left on device" in last) == (broken == "full")
    if command == "convert":
        assert read_graph(files / "new.npz").W.nnz


# --- errors ---


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("EOFError('cut')", "A file ends too early (cut). Is it complete?"),
        ("EOFError()", "A file ends too early (nothing is left to read). Is it complete?"),
        ("MemoryError()", "There is not enough memory. Use fewer samples or columns, or a larger machine."),
        ("OverflowError('too large')", "This is a bug: OverflowError: too large. Please report it; SMOOTHGRAPH_DEBUG=1 shows"),
        ("RecursionError('deep')", "This is a bug: RecursionError: deep."),
        ("__import__('zipfile').BadZipFile('no zip')", "This is a bug: BadZipFile: no zip."),
        ("KeyError('a')", "This is a bug: KeyError: 'a'."),
        ("OSError(28, 'No space left on device', 'g.npz')", "g.npz: No space left on device."),
        ("ValueError('two\\nlines \\x1b[2J\\x9b')", "two lines \\x1b[2J\\x9b"),
        ("ValueError()", "This is a bug: ValueError: no message."),
    ],
)
def test_every_error_is_one_line(tmp_path, capsys, monkeypatch, error, line):
    def fail(path, **options):
        raise eval(error)

    monkeypatch.setattr("smoothgraph.io.graphs.read_graph", fail)
    with pytest.raises(SystemExit) as end:
        main(["info", "graph.npz"])
    shown, told = capsys.readouterr()
    assert (end.value.code, shown) == (1, "")
    assert told.startswith(f"smoothgraph: {line}")
    assert told.count("\n") == 1
    assert "Traceback" not in told
    monkeypatch.setenv("SMOOTHGRAPH_DEBUG", "1")
    with pytest.raises(SystemExit):
        main(["info", "graph.npz"])
    assert "Traceback" in capsys.readouterr().err


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def test_control_characters_of_files_never_reach_the_terminal(tmp_path, capsys, rng):
    """In ids, labels, metadata, names of columns and of files; in results, messages, warnings and errors."""
    graph = tmp_path / f"a{EVIL}.npz"
    names = np.array([f"{i}{EVIL}" for i in range(3)])
    write_graph(
        graph, np.ones((3, 3)) - np.eye(3), ids=names, labels=names, metadata={"parameters": {EVIL: EVIL}, "smoothgraph": EVIL}
    )
    table = tmp_path / f"t{EVIL}.csv"
    pd.DataFrame(rng.normal(size=(30, 2)) * [1.0, 1e6], columns=["a", f"b{EVIL}"]).to_csv(table, index=False)
    few = tmp_path / "few.csv"
    few.write_text(f"id,label\n{names[0]},x{EVIL}\n{names[1]},y\n", encoding="utf-8")
    commands = [
        ["info", graph], ["info", graph, "--json"], ["compare", graph, graph], ["convert", graph, tmp_path / f"c{EVIL}.csv"],
        ["plot", graph, "-o", tmp_path / f"p{EVIL}.png", "--kind", "weights"],
        ["plot", graph, "--kind", "neighborhood", "--node", "x"],
        ["learn", table, "-k", 3, "-o", tmp_path / f"g{EVIL}.npz"],
        ["learn", table, "--columns", "c", "-o", tmp_path / "g.npz"],
        ["learn", table, "-k", 3, "-o", tmp_path / f"g.{EVIL}"], ["propagate", graph, few, "-o", tmp_path / "all.csv"],
        ["info", tmp_path / f"none{EVIL}.npz"], ["convert", graph, tmp_path / f"no{EVIL}" / "g.npz"],
    ]  # fmt: skip
    for command in commands:
        with pytest.raises(SystemExit):
            main([str(argument) for argument in command])
        printed = "".join(capsys.readouterr())
        assert printed
        assert not set(printed) & set("\x1b\x07\x9b\u202e"), command


def test_metadata_that_are_not_ours_are_no_error(tmp_path, capsys):
    for metadata in (
        {"parameters": None},
        {"parameters": {}, "model_parameters": {}},
        {"parameters": {}, "model_parameters": 3, "n": "x"},
    ):
        write_graph(tmp_path / "graph.npz", np.ones((3, 3)) - np.eye(3), metadata=metadata)
        with pytest.raises(SystemExit) as end:
            main(["info", str(tmp_path / "graph.npz")])
        assert end.value.code == 0
        assert "how it was learned cannot be told" in capsys.readouterr().out


# --- outputs ---


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_output_never_replaces_an_input(files, capsys):
    """Nor under another name of the same file."""
    table, graph, link = files / "table.csv", files / "graph.npz", files / "link.npz"
    link.symlink_to(graph)
    few, here = files / "few.csv", files / "here"
    few.write_text("id,label\n0,x\n1,y\n")
    here.mkdir()
    (here / "graph.npz").hardlink_to(graph)
    np.savez(files / "samples.npz", X=np.random.default_rng(0).normal(size=(30, 2)))
    (here / "graph.png").symlink_to(files / "samples.npz")
    near = "--prior-strength", 1
    for command in (
        ["learn", table, "-k", 4, "-o", table],
        ["learn", table, "-k", 4, "--prior", graph, *near, "-o", graph],
        ["learn", table, "-k", 4, "--prior", link, *near, "-o", graph],
        ["learn", table, "-k", 4, "--prior", graph, *near, "-o", here / "graph.npz"],
        ["convert", graph, link],
        ["propagate", graph, few, "-o", few],
        ["demo", files / "samples.npz", "-k", 4, "-o", here],
    ):
        before = contents(files)
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in command])
        assert end.value.code == 1
        assert "is also an input" in capsys.readouterr().err, command
        assert contents(files) == before


def test_outputs_are_checked_before_the_work(files, capsys, monkeypatch):
    """A folder that is not there, a read-only file, a format that does not exist: none costs an hour."""

    def work(*arguments, **options):
        raise AssertionError("work was done")

    for place in (
        "learner.GraphLearner.fit",
        "uses.label_propagation",
        "uses.spectral_embedding",
        "datasets.mnist",
        "plots.overview",
    ):
        monkeypatch.setattr(f"smoothgraph.{place}", work)
    few, kept = files / "few.csv", files / "kept"
    few.write_text("id,label\n0,x\n1,y\n")
    for name in ("kept.npz", "kept.csv", "kept.png"):
        (files / name).write_text("kept")
        (files / name).chmod(0o444)
    table, graph = files / "table.csv", files / "graph.npz"
    commands = {
        "npz": [["learn", table, "-k", 4, "-o"], ["convert", graph], ["datasets", "mnist", "-o"]],
        "csv": [["propagate", graph, few, "-o"], ["embed", graph, "-o"]],
        "png": [["plot", graph, "-o"]],
    }
    for kind, typed in commands.items():
        for command in typed:
            for output, reason in (
                (files / "nowhere" / f"new.{kind}", "make it first"),
                (kept.with_suffix(f".{kind}"), "is read-only"),
                (files / "new.docx", ".docx"),
            ):
                with pytest.raises(SystemExit) as end:
                    main([str(argument) for argument in [*command, output]])
                assert end.value.code == 1
                assert reason in capsys.readouterr().err, (command, output)
    with pytest.raises(SystemExit):
        main(["demo", "-o", str(table)])
    assert "is a file: name a folder" in capsys.readouterr().err
