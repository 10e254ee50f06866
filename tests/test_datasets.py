"""The data sets: what their files hold, and what happens where the files are missing."""

import bz2
import functools
import gzip
import hashlib
import http.server
import io
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from smoothgraph import datasets
from smoothgraph.datasets import convert, files, sources
from smoothgraph.datasets.files import Download, File
from smoothgraph.datasets.spherical import lognormal_spectrum, patch_pixels, simulate_map


def need(*wanted):
    """Skip where a file is not on this machine."""
    for file in wanted:
        if files.find(file) is None:
            pytest.skip(f"needs {file.path} in the folder named by SMOOTHGRAPH_DATA, or in {files.cache_folder()}")


@pytest.fixture
def nothing_here(monkeypatch, tmp_path):
    """A machine with an empty cache and no SMOOTHGRAPH_DATA; returns the folder of the cache."""
    monkeypatch.delenv("SMOOTHGRAPH_DATA", raising=False)
    for name in ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):  # whichever of them this operating system looks at
        monkeypatch.setenv(name, str(tmp_path / "user"))
    return files.cache_folder()


@pytest.fixture
def server(tmp_path):
    """An HTTP server: returns (its folder, its address)."""
    folder = tmp_path / "public"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


# --- what the files hold --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "needed", "classes"),
    [
        ("mnist", sources.MNIST_TRAIN, range(10)),
        ("usps", (sources.USPS,), range(10)),
        ("att_faces", (sources.ATT_FACES,), range(1, 41)),
        ("coil20", (sources.COIL20,), range(1, 21)),
        ("words", (sources.WORDS,), None),
        ("words_sample", (sources.WORDS_SAMPLE,), None),
        ("forest_cover", (sources.FOREST_COVER,), range(1, 8)),
        ("molecules", (sources.MOLECULES,), None),
        ("census", (sources.CENSUS,), None),
    ],
)
def test_a_data_set_has_the_shape_that_the_list_says(load, needed, classes):
    need(*needed)
    data = getattr(datasets, load)()
    entry = next(entry for entry in datasets.list_datasets() if entry.name == load)
    assert entry.present
    assert data.X.shape == entry.shape
    assert data.name == load
    assert data.description
    assert data.source
    assert data.license
    assert (data.y is None) == (classes is None)
    if classes is not None:
        assert sorted(set(data.y.tolist())) == list(classes)
        assert data.y.shape == (entry.shape[0],)
    if data.image_shape is not None:
        assert np.prod(data.image_shape) == entry.shape[1]
    if data.names is not None:
        assert len(set(data.names.tolist())) == entry.shape[0]


@pytest.mark.parametrize("load", ["mnist", "usps", "att_faces", "coil20"])
def test_images_of_a_class_look_alike(load):
    """Most images have the label of their nearest other image, so labels are in the order of the images."""
    need(*(sources.MNIST_TEST if load == "mnist" else [getattr(sources, load.upper())]))
    data = datasets.mnist("test") if load == "mnist" else getattr(datasets, load)()
    some = np.random.default_rng(0).permutation(len(data.X))[:1500]
    X, y = data.X[some].astype(np.float32), data.y[some]
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    np.fill_diagonal(distances, np.inf)
    assert (y[distances.argmin(axis=1)] == y).mean() > 0.85


def test_parts_of_the_digits():
    need(*sources.MNIST_TRAIN, *sources.MNIST_TEST, sources.USPS)
    assert datasets.mnist("all").X.shape == (70_000, 784)
    assert datasets.mnist("test").y[:5].tolist() == datasets.mnist("all").y[60_000:60_005].tolist()
    assert len(datasets.usps("train").X) + len(datasets.usps("test").X) == len(datasets.usps().X)
    with pytest.raises(ValueError, match="part='validation'"):
        datasets.mnist("validation")


def test_the_molecules_columns_are_those_that_a_download_gets():
    need(sources.MOLECULES)
    assert datasets.molecules().features.tolist() == convert.MOLECULE_FEATURES


def test_neighbouring_words_mean_alike():
    need(sources.WORDS)
    words = datasets.words()
    place = {word: i for i, word in enumerate(words.names)}
    unit = words.X / np.linalg.norm(words.X, axis=1, keepdims=True)
    for word, similar, other in [("king", "queen", "bicycle"), ("january", "february", "kitchen")]:
        assert unit[place[word]] @ unit[place[similar]] > unit[place[word]] @ unit[place[other]] + 0.3


# --- where they come from -------------------------------------------------------------------------------------------------


def test_the_named_folder_comes_before_the_cache(nothing_here, monkeypatch, tmp_path):
    file = File("some/file.txt")
    assert files.find(file) is None
    for folder, text in ((nothing_here, "cache"), (tmp_path / "named", "named")):
        (folder / "some").mkdir(parents=True)
        (folder / "some" / "file.txt").write_text(text)
    assert files.get(file).read_text() == "cache"
    monkeypatch.setenv("SMOOTHGRAPH_DATA", str(tmp_path / "named"))
    assert files.get(file).read_text() == "named"


def test_nothing_is_present_on_an_empty_machine(nothing_here):
    assert not any(entry.present for entry in datasets.list_datasets())


def test_a_file_is_downloaded_once(nothing_here, server):
    folder, address = server
    (folder / "a.txt").write_bytes(b"content")
    file = File("some/a.txt", (Download(address + "a.txt", sha256(b"content"), "a.txt"),))
    assert files.get(file).read_bytes() == b"content"
    assert files.get(file) == nothing_here / "some" / "a.txt"
    (folder / "a.txt").unlink()
    assert files.get(file).read_bytes() == b"content"


def test_a_wrong_checksum_leaves_nothing_behind(nothing_here, server):
    folder, address = server
    (folder / "a.txt").write_bytes(b"something else")
    file = File("some/a.txt", (Download(address + "a.txt", sha256(b"content"), "a.txt"),))
    with pytest.raises(ValueError, match="has the sha256 checksum"):
        files.get(file)
    assert files.find(file) is None
    assert not [path for path in nothing_here.rglob("*") if path.is_file()]


def test_a_file_put_there_by_hand_is_taken_if_it_is_the_right_one(nothing_here):
    file = File("some/a.txt", (Download("http://127.0.0.1:9/a.txt", sha256(b"content"), "raw.txt"),))
    (nothing_here / "downloads").mkdir(parents=True)
    by_hand = nothing_here / "downloads" / "raw.txt"
    by_hand.write_bytes(b"something else")
    with pytest.warns(match="has the sha256 checksum"), pytest.raises(FileNotFoundError, match="download failed"):
        files.get(file)
    assert not by_hand.exists()
    by_hand.write_bytes(b"content")
    assert files.get(file).read_bytes() == b"content"


def test_without_a_network_the_error_says_what_to_fetch_and_where_to_put_it(nothing_here):
    file = File("some/a.txt", (Download("http://127.0.0.1:9/a.txt", sha256(b""), "raw.txt"),))
    with pytest.raises(FileNotFoundError) as caught:
        files.get(file)
    for wanted in ("http://127.0.0.1:9/a.txt", sha256(b""), str(nothing_here / "downloads" / "raw.txt"), "SMOOTHGRAPH_DATA"):
        assert wanted in str(caught.value)


def test_what_cannot_be_downloaded_says_so(nothing_here, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no public source"):
        datasets.words_sample()
    nowhere = File(sources.CENSUS.path, (Download("http://127.0.0.1:9/x.zip", None, "x.zip"),), convert.census)
    monkeypatch.setattr(sources, "CENSUS", nowhere)
    with pytest.raises(FileNotFoundError, match=r"molecules\(\) can replace it"):
        datasets.census()


def test_a_conversion_that_fails_leaves_no_half_file(nothing_here, server):
    folder, address = server
    (folder / "a.zip").write_bytes(zipped({"a.txt": b"content"}))

    def fail(downloads, target):
        target.write_bytes(b"half")
        raise ValueError("no zip")

    file = File("some/a.npz", (Download(address + "a.zip", None, "a.zip"),), fail)
    with pytest.raises(ValueError, match="no zip"):
        files.get(file)
    assert files.find(file) is None
    assert not [path for path in nothing_here.rglob("*") if path.is_file()]


# --- what enters the cache is whole ---------------------------------------------------------------------------------------

PAGE = b"\n<!DOCTYPE html><html><body>Moved. Please log in.</body></html>"


def zipped(members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in members.items():
            archive.writestr(name, values)
    return content.getvalue()


def with_a_changed_byte(content, at):
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


NOISE = np.random.default_rng(0).bytes(5000)
WHOLE = {
    "a.zip": zipped({"a.txt": NOISE}),
    "a.npz": zipped({"a.npy": NOISE}),
    "a.gz": gzip.compress(NOISE, mtime=0),
    "a.bz2": bz2.compress(NOISE),
    "a.csv": b"1,2\n",
}
PACKED = {name: content for name, content in WHOLE.items() if name != "a.csv"}
DAMAGED = [pytest.param(name, PAGE, id=f"{name}-page") for name in WHOLE]
DAMAGED += [pytest.param(name, b"", id=f"{name}-empty") for name in WHOLE]
DAMAGED += [pytest.param(name, content[:-100], id=f"{name}-cut") for name, content in PACKED.items()]
DAMAGED += [pytest.param(name, with_a_changed_byte(content, 2000), id=f"{name}-changed") for name, content in PACKED.items()]


@pytest.mark.parametrize(("name", "content"), DAMAGED)
def test_what_is_not_whole_does_not_enter_the_cache(nothing_here, server, name, content):
    """No checksum is known, as for files of AT&T, Columbia and UCI."""
    folder, address = server
    file = File(f"some/{name}", (Download(address + name, None, name),))
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match="was not kept") as caught:
        files.get(file)
    assert address + name in str(caught.value)
    assert not [path for path in nothing_here.rglob("*") if path.is_file()]
    (folder / name).write_bytes(WHOLE[name])
    assert files.get(file).read_bytes() == WHOLE[name]


@pytest.mark.parametrize(("name", "content"), [case for case in DAMAGED if case.values[1] in (b"", PAGE)])
def test_a_damaged_file_in_the_cache_is_removed_and_fetched_again(nothing_here, server, name, content):
    folder, address = server
    (folder / name).write_bytes(WHOLE[name])
    file = File(f"some/{name}", (Download(address + name, None, name),))
    for place in (nothing_here / "some" / name, nothing_here / "downloads" / name):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        with pytest.warns(match=f"{re.escape(str(place))} is .*, and was removed"):
            assert files.get(file).read_bytes() == WHOLE[name]
        files.get(file).unlink()


def test_a_cut_archive_in_the_cache_is_removed_and_fetched_again(nothing_here, server):
    folder, address = server
    (folder / "a.npz").write_bytes(WHOLE["a.npz"])
    place = nothing_here / "some" / "a.npz"
    place.parent.mkdir(parents=True)
    place.write_bytes(WHOLE["a.npz"][:-100])
    with pytest.warns(match="table of contents is missing"):
        assert files.get(File("some/a.npz", (Download(address + "a.npz", None, "a.npz"),))).read_bytes() == WHOLE["a.npz"]


def test_a_damaged_file_in_the_users_own_folder_is_named_and_stays(nothing_here, monkeypatch, tmp_path):
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "a.npz").write_bytes(PAGE)
    monkeypatch.setenv("SMOOTHGRAPH_DATA", str(tmp_path / "named"))
    with pytest.raises(ValueError, match="is a web page"):
        files.get(File("a.npz"))
    assert (tmp_path / "named" / "a.npz").read_bytes() == PAGE


def test_an_archive_without_the_expected_members_is_removed(nothing_here, server, monkeypatch):
    published(server, monkeypatch, "CENSUS", sources.CENSUS, zipped({"other.txt": b"1"}))
    monkeypatch.setattr(
        sources, "CENSUS", replace(sources.CENSUS, downloads=(replace(sources.CENSUS.downloads[0], checksum=None),))
    )
    with pytest.raises(ValueError, match="does not hold what was expected"):
        datasets.census()
    assert not [path for path in nothing_here.rglob("*") if path.is_file()]


def test_a_download_that_ends_early_is_no_file(nothing_here, tmp_path):
    """A server that promises more bytes than it sends: text has no end of its own that could be missed."""

    class Short(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"1,2\n")

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Short) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{running.server_port}/a.csv"
        with pytest.raises(FileNotFoundError, match="download failed"):
            files.get(File("some/a.csv", (Download(address, None, "a.csv"),)))
        running.shutdown()
        thread.join()
    assert not [path for path in nothing_here.rglob("*") if path.is_file()]


GETTING = """
import sys, time
from pathlib import Path
from smoothgraph.datasets.files import Download, File, get

def convert(downloads, target):
    content = b"".join(path.read_bytes() for path in downloads)
    time.sleep(0.02 * int(sys.argv[2]))
    target.write_bytes(content[::-1])

names = "a.gz", "b.gz"
file = File("some/ab.bin", tuple(Download(sys.argv[1] + name, None, name) for name in names), convert)
print(len(get(file).read_bytes()))
"""


def test_several_processes_that_download_at_once_all_get_a_whole_file(nothing_here, server):
    folder, address = server
    for name in ("a.gz", "b.gz"):
        (folder / name).write_bytes(WHOLE["a.gz"])
    commands = [[sys.executable, "-c", GETTING, address, str(number)] for number in range(6)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate() for process in running]
    assert [output for output, _ in outputs] == [f"{2 * len(WHOLE['a.gz'])}\n"] * 6, outputs
    assert (nothing_here / "some" / "ab.bin").read_bytes() == (2 * WHOLE["a.gz"])[::-1]
    assert [path.name for path in nothing_here.rglob("*") if path.is_file()] == ["ab.bin"]


# --- conversions: a small public file as its publisher makes them, through the server, to the loader --------------------------


def published(server, monkeypatch, name, file, *contents):
    """Put the contents where the file's downloads are looked for."""
    folder, address = server
    downloads = []
    for download, content in zip(file.downloads, contents, strict=True):
        (folder / download.name).write_bytes(content)
        downloads.append(Download(address + download.name, sha256(content), download.name))
    monkeypatch.setattr(sources, name, File(file.path, tuple(downloads), file.convert))


def test_usps_from_libsvm_text(nothing_here, server, monkeypatch):
    rows = [b"7 1:-1 2:0.5 256:1\n10 1:1\n", b"1 1:-1\n"]
    published(server, monkeypatch, "USPS", sources.USPS, *map(bz2.compress, rows))
    data = datasets.usps()
    assert data.y.tolist() == [6, 9, 0]
    assert data.X[0, [0, 1, 2, 255]].tolist() == [0.0, 0.75, 0.5, 1.0]


def archive(names, image, form):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for name in names:
            picture = io.BytesIO()
            Image.fromarray(image(name)).save(picture, format=form)
            zipped.writestr(name, picture.getvalue())
    return content.getvalue()


def test_faces_and_objects_from_archives_of_images(nothing_here, server, monkeypatch):
    faces = [f"s{s}/{i}.pgm" for s in range(40, 0, -1) for i in range(10, 0, -1)]
    objects = [f"coil-20-proc/obj{s}__{i}.png" for s in range(1, 21) for i in range(72)]

    def picture(name):  # the subject's number near the upper left corner
        image = np.zeros((7, 5), np.uint8)
        image[0, 1] = int(re.search(r"^s(\d+)/|obj(\d+)__", name).expand(r"\1\2"))
        return image

    published(server, monkeypatch, "ATT_FACES", sources.ATT_FACES, archive(faces, picture, "PPM"))
    published(server, monkeypatch, "COIL20", sources.COIL20, archive(objects, picture, "PNG"))
    for data in (datasets.att_faces(), datasets.coil20()):
        assert data.image_shape == (7, 5)
        np.testing.assert_array_equal(data.X[:, 1], data.y)
        assert data.X.sum() == data.y.sum()
    assert len(data.X) == 1440


def test_words_from_word2vec_text(nothing_here, server, monkeypatch):
    names = [chr(97 + i // 676 % 26) + chr(97 + i // 26 % 26) + chr(97 + i % 26) for i in range(10_010)]
    lines = [f"{name} {i} 0.5" for i, name in enumerate(names)]
    text = "\n".join(["10012 2", ", 1 2", *lines[:3], "é 1 2", *lines[3:]])
    published(server, monkeypatch, "WORDS", sources.WORDS, gzip.compress(text.encode()))
    data = datasets.words()
    assert data.names.tolist() == names[:10_000]
    np.testing.assert_array_equal(data.X[:, 0], np.arange(10_000))


def test_tables(nothing_here, server, monkeypatch):
    published(server, monkeypatch, "FOREST_COVER", sources.FOREST_COVER, gzip.compress(b"2596,51,5\n-3,7173,2\n"))
    cover = datasets.forest_cover()
    assert cover.X.tolist() == [[2596, 51], [-3, 7173]]
    assert cover.y.tolist() == [5, 2]
    smiles = b"SMILES,SPLIT\nCC(C)Cl,train\nc1cc[nH]c1Br,train\n"
    published(server, monkeypatch, "MOLECULES", sources.MOLECULES, smiles)
    data = datasets.molecules()
    assert data.X.shape == (2, 68)
    counts = [dict(zip(data.features.tolist(), row.tolist(), strict=True)) for row in data.X]
    assert {name: count for name, count in counts[0].items() if count} == {
        "C": 3, "(": 1, ")": 1, "L": 1, "CC": 1, "C(": 1, "(C": 1, "C)": 1,
    }  # fmt: skip
    assert counts[1]["h"] == counts[1]["R"] == counts[1]["cc"] == 1
    assert counts[1]["n"] == 0
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("USCensus1990.data.txt", "caseid,dAge,iSex\n10000,5,1\n10001,6,0\n")
    published(server, monkeypatch, "CENSUS", sources.CENSUS, zipped.getvalue())
    census = datasets.census()
    assert census.X.tolist() == [[5, 1], [6, 0]]
    assert census.features.tolist() == ["dAge", "iSex"]


# --- simulated maps -------------------------------------------------------------------------------------------------------


def test_patches_tile_the_sphere_as_healpix_has_it():
    healpy = pytest.importorskip("healpy")
    nside, side = 16, 8
    pixels = patch_pixels(side, nside)
    assert sorted(pixels) == list(range(side * side))
    x, y, face = healpy.pix2xyf(nside, pixels + 5 * side * side, nest=True)
    assert np.ptp(face) == 0
    np.testing.assert_array_equal((x - x.min()).reshape(side, side), np.broadcast_to(np.arange(side), (side, side)))
    np.testing.assert_array_equal((y - y.min()).reshape(side, side), np.broadcast_to(np.arange(side)[:, None], (side, side)))


@pytest.mark.parametrize("kind", ["gaussian", "lognormal"])
def test_simulated_maps_say_so_and_are_smooth(kind):
    pytest.importorskip("healpy")
    need(sources.SPECTRA)
    data = datasets.spherical_maps(8, n_maps=2, nside=32, kind=kind, seed=1)
    assert "simulated" in data.name
    assert "simulated" in data.description
    assert data.X.shape == (64, 2 * 48)
    maps = data.X.T.reshape(-1, 8, 8)
    nearby = np.mean((maps[:, :, 1:] - maps[:, :, :-1]) ** 2) + np.mean((maps[:, 1:] - maps[:, :-1]) ** 2)
    far = np.mean((maps[:, :, 4:] - maps[:, :, :4]) ** 2) + np.mean((maps[:, 4:] - maps[:, :4]) ** 2)
    assert nearby < 0.8 * far
    np.testing.assert_array_equal(data.X, datasets.spherical_maps(8, n_maps=2, nside=32, kind=kind, seed=1).X)
    full = datasets.spherical_maps(16, n_maps=2, nside=32, kind=kind, seed=1)
    np.testing.assert_array_equal(full.X.reshape(16, 16, -1)[:8, :8].reshape(64, -1), data.X)


def test_a_lognormal_map_has_the_spectrum_of_the_gaussian_one():
    healpy = pytest.importorskip("healpy")
    spectrum = 1.0 / (1.0 + np.arange(64.0)) ** 3
    spectrum[0] = 0.0
    seen = np.mean([healpy.anafast(simulate_map(spectrum, 32, "lognormal", seed), lmax=60) for seed in range(20)], axis=0)
    np.testing.assert_allclose(seen[10:60].sum(), spectrum[10:60].sum(), rtol=0.1)
    one = simulate_map(spectrum, 32, "lognormal", 0)
    _, shift = lognormal_spectrum(spectrum)
    assert one.min() > -shift
    assert np.mean((one - one.mean()) ** 3) > 0  # a long tail above


def test_bad_requests_for_maps_are_refused():
    for wrong, message in [
        ({"kind": "real"}, "kind"),
        ({"nside": 100}, "power of 2"),
        ({"side": 513}, "edge of a patch"),
        ({"n_maps": 41}, "40"),
    ]:
        with pytest.raises(ValueError, match=message):
            datasets.spherical_maps(**wrong)
