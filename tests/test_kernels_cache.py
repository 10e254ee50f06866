"""Compiled kernels on disk: whatever the folders and files are like, a kernel runs, and never code that is damaged."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numba
import numpy as np
import pytest

import smoothgraph
from smoothgraph._kernels import cache


def doubled(x):
    return 2.0 * x


def fresh():
    """The kernel as a new process has it: nothing is compiled or loaded yet."""
    return cache.with_cache(numba.njit(doubled))


def run():
    """Run the kernel as a new process would: "compiled" or "loaded"."""
    kernel = fresh()
    assert kernel(3.0) == 6.0
    _, loaded, compiled = kernel.stats
    assert sum(loaded.values()) + sum(compiled.values()) == 1
    return "loaded" if loaded else "compiled"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder with an installation, a home and temporary files, which are all that this process knows of."""
    for name in ("install", "home", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "install" / "source.py").write_text("# a kernel")
    monkeypatch.setattr(cache, "SOURCES", tmp_path / "install")
    monkeypatch.setattr(cache, "_told", False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    cache.places.cache_clear()
    cache._stamp.cache_clear()
    yield tmp_path
    cache.places.cache_clear()
    cache._stamp.cache_clear()


def stored(folder):
    """The files of kernels in a folder, at any depth, unfinished ones as well."""
    return sorted(Path(folder).rglob("*.kernel*"))


def seal(path):
    """Put a file where a folder should be: nobody can make the folder then, not even root."""
    path.write_text("")


def test_kernels_are_stored_beside_their_sources_and_loaded_by_the_next_process(machine):
    assert [run(), run()] == ["compiled", "loaded"]
    assert len(stored(machine)) == len(stored(machine / "install")) == 1


def test_an_installation_that_nobody_can_write_to_uses_the_home(machine):
    seal(machine / "install" / "__pycache__")
    assert [run(), run()] == ["compiled", "loaded"]
    assert len(stored(machine)) == len(stored(machine / "home")) == 1


def test_without_installation_and_home_there_is_a_temporary_folder_of_ones_own_and_a_warning(machine):
    seal(machine / "install" / "__pycache__")
    seal(machine / "home" / ".cache")
    with pytest.warns(UserWarning, match="Compiled kernels are kept in .*NUMBA_CACHE_DIR can name another folder") as told:
        assert [run(), run(), fresh()(3)] == ["compiled", "loaded", 6]
    assert len(told) == 1
    [own] = (machine / "tmp").iterdir()
    assert own.stat().st_mode & 0o777 == 0o700
    assert len(stored(machine)) == len(stored(own)) == 2


def test_a_user_without_a_home(machine, monkeypatch):
    """As in a container that is run with a number for a user."""

    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    seal(machine / "install" / "__pycache__")
    with pytest.warns(UserWarning, match="are kept in"):
        assert [run(), run()] == ["compiled", "loaded"]


def test_kernels_that_came_with_a_read_only_installation_are_loaded(machine, monkeypatch):
    """As in an image whose kernels were compiled when it was made; what is damaged in it is replaced elsewhere."""

    def refuse(path, content, write=cache._write):
        if path.is_relative_to(machine / "install"):
            raise PermissionError
        write(path, content)

    assert run() == "compiled"
    monkeypatch.setattr(cache, "_write", refuse)
    assert run() == "loaded"
    [file] = stored(machine)
    file.write_bytes(b"damaged")
    assert [run(), run()] == ["compiled", "loaded"]
    assert len(stored(machine / "home")) == 1


def test_the_named_folder_is_used(machine, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(machine / "named"))
    assert [run(), run()] == ["compiled", "loaded"]
    assert len(stored(machine)) == len(stored(machine / "named")) == 1
    cache.places.cache_clear()
    seal(machine / "file")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(machine / "file"))
    with pytest.warns(UserWarning, match="are kept in"):
        assert [run(), run()] == ["compiled", "loaded"]
    assert len(stored(machine / "tmp")) == 1


def test_settings_that_change_the_code_have_kernels_of_their_own(machine, monkeypatch):
    """numba's own cache gives code without bounds checks to whoever asks for them later."""
    assert run() == "compiled"
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    assert run() == "loaded"
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert [run(), run()] == ["compiled", "loaded"]
    monkeypatch.delenv("NUMBA_BOUNDSCHECK")
    assert run() == "loaded"


def test_a_change_of_any_kernel_compiles_those_that_may_call_it(machine):
    assert [run(), run()] == ["compiled", "loaded"]
    files = stored(machine)
    (machine / "install" / "source.py").write_text("# another kernel")
    cache._stamp.cache_clear()
    assert [run(), run()] == ["compiled", "loaded"]
    assert stored(machine) == files  # replaced: nothing piles up


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "folder", "gone"])
def test_damaged_files_are_compiled_again_and_replaced(machine, damage):
    assert run() == "compiled"
    [file] = stored(machine)
    good = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
        assert run() == "compiled"
        assert len(stored(machine / "home")) == 1
        return
    if damage != "gone":
        file.write_bytes({"empty": b"", "cut": good[:1000], "flipped": good[:-1] + bytes([good[-1] ^ 1])}[damage])
    assert [run(), run()] == ["compiled", "loaded"]
    assert stored(machine) == [file]


def loads():
    """Whether a new process finds its kernel in the cache."""
    kernel = fresh()
    return kernel._cache.load_overload((numba.float64,), kernel.targetctx) is not None


def test_no_damaged_bit_is_ever_run(machine):
    run()
    [file] = stored(machine)
    good, rng = file.read_bytes(), np.random.default_rng(0)
    places = {0, 31, 32, len(good) - 1, *rng.integers(len(good), size=500).tolist()}
    for place in places:
        bad = bytearray(good)
        bad[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(bad)
        assert not loads(), place
    for length in (0, 1, 31, 32, 33, len(good) // 2, len(good) - 1):
        file.write_bytes(good[:length])
        assert not loads(), length
    file.write_bytes(good + b"\0")
    assert not loads()
    file.write_bytes(good)
    assert loads()


def test_a_kernel_for_other_types_under_this_name_is_not_taken(machine):
    run()
    [file] = stored(machine)
    assert fresh()(3) == 6
    [other] = set(stored(machine)) - {file}
    shutil.copy(other, file)
    assert not loads()


@pytest.fixture
def only_temporary(machine):
    """The same, where only the folder for temporary files can be used, and a kernel that is stored there."""
    seal(machine / "install" / "__pycache__")
    seal(machine / "home" / ".cache")
    with pytest.warns(UserWarning, match="are kept in"):
        run()
    cache._told = False
    return stored(machine)[0]


def test_nothing_of_another_user_is_loaded_or_written_to(only_temporary, monkeypatch):
    file = only_temporary
    assert loads()
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert not loads()
    file.unlink()
    with pytest.warns(UserWarning, match=r"can be written to by others.*") as told:
        assert run() == "compiled"
    assert "every process compiles them anew" in str(told[0].message)
    assert not file.exists()


@pytest.mark.parametrize("plant", ["link", "open folder"])
def test_a_planted_folder_is_not_used(only_temporary, machine, plant):
    folder = only_temporary.parent
    if plant == "link":
        shutil.move(folder, machine / "elsewhere")
        folder.symlink_to(machine / "elsewhere")
    else:
        folder.chmod(0o777)
    for file in stored(machine):
        file.unlink()
    with pytest.warns(UserWarning, match="can be written to by others"):
        assert run() == "compiled"
    assert stored(machine) == []


def test_a_numba_without_a_place_for_this_cache_uses_its_own():
    class Dispatcher:
        py_func = doubled

        def enable_caching(self):
            self.is_cached = True

    assert cache.with_cache(Dispatcher()).is_cached


def test_who_listens_hears_of_the_first_compilation_only(machine):
    heard = []
    with cache.listening(heard.append):
        run()
        assert heard == [cache.COMPILING]
        fresh()(3)
    with cache.listening(heard.append):
        run()
    assert heard == [cache.COMPILING]


def test_threads_that_compile_at_once(machine):
    results = []
    threads = [threading.Thread(target=lambda: results.append(run())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert run() == "loaded"
    assert len(stored(machine)) == 1


SCRIPT = """
from smoothgraph._kernels.schemes import _clipped
print(_clipped(3.0, 2.0), _clipped(-1.0, None))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, without compiled kernels, and a way to use it in a new process: (exit code, stdout, stderr)."""
    source, install = Path(smoothgraph.__file__).parent, tmp_path / "install"
    shutil.copytree(source, install / "smoothgraph", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "home").mkdir()
    settings = {"PYTHONPATH": str(install), "HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    cleared = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}

    def run(before=(), preexec_fn=None, **others):
        command = [*before, sys.executable, "-c", SCRIPT]
        done = subprocess.run(
            command, env=cleared | settings | others, capture_output=True, text=True, timeout=300, preexec_fn=preexec_fn
        )
        return done.returncode, done.stdout.strip(), done.stderr

    return tmp_path, run


def test_a_package_and_a_home_that_may_not_be_written_to(package):
    """As in a container. Root has to give up its power over files for this."""
    folder, run = package
    before = []
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root cannot give its powers up without setpriv")
        before = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search"]
    (folder / "tmp").mkdir()
    sealed = [folder / "install" / "smoothgraph" / "_kernels", folder / "home"]
    for path in sealed:
        path.chmod(0o555)
    try:
        code, printed, told = run(before, TMPDIR=str(folder / "tmp"))
    finally:
        for path in sealed:
            path.chmod(0o755)
    assert (code, printed) == (0, "2.0 0.0")
    assert told.count("Permission denied") == 2  # for the package and for the home
    assert len(stored(folder / "tmp")) == len(stored(folder)) == 2


def test_a_disk_that_is_full_means_compiling_in_memory(package):
    folder, run = package
    code, printed, told = run(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert (code, printed) == (0, "2.0 0.0")
    assert told.count("every process compiles them anew") == 1
    assert stored(folder) == []


def test_without_compilation_the_kernels_are_python(package):
    folder, run = package
    assert run(NUMBA_DISABLE_JIT="1") == (0, "2.0 0.0", "")
    assert stored(folder) == []
