"""Which files each data set has, and from which public addresses they come.

Checksums are those of the public files: as published by scikit-learn (forest cover), by the repository that holds the file
(molecules), by gensim (words), by torchvision (USPS), and as found in many projects (MNIST). The spectra are
taken unchanged from the results of the deepsphere project. AT&T, Columbia and UCI publish no checksums.
"""

from smoothgraph.datasets import convert
from smoothgraph.datasets.files import Download, File

MNIST_SERVER = "https://ossci-datasets.s3.amazonaws.com/mnist/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"


def _idx(name: str, sha256: str) -> File:
    return File(f"mnist/{name}", (Download(MNIST_SERVER + name, f"sha256:{sha256}", name),))


MNIST_TRAIN = (
    _idx("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    _idx("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
)
MNIST_TEST = (
    _idx("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    _idx("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
USPS = File(
    "usps/usps.h5",
    (
        Download(LIBSVM + "usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197", "usps.bz2"),
        Download(LIBSVM + "usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118", "usps.t.bz2"),
    ),
    convert.usps,
)
ATT_FACES = File(
    "att_faces/att_faces_112x92.npz",
    (Download("https://www.cl.cam.ac.uk/research/dtg/attarchive/pub/data/att_faces.zip", None, "att_faces.zip"),),
    convert.att_faces,
)
COIL20 = File(
    "coil20/coil20_128x128.npz",
    (
        Download(
            "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
            None,
            "coil-20-proc.zip",
        ),
    ),
    convert.coil20,
)
WORDS = File(
    "words/glove6B100d_top10000.npz",
    (
        Download(
            "https://github.com/RaRe-Technologies/gensim-data/releases/download/glove-wiki-gigaword-100/"
            "glove-wiki-gigaword-100.gz",
            "md5:40ec481866001177b8cd4cb0df92924f",
            "glove-wiki-gigaword-100.gz",
        ),
    ),
    convert.words,
)
WORDS_SAMPLE = File("words/glove6B100d_100k.npz")
FOREST_COVER = File(
    "covtype/covtype.npz",
    (
        Download(
            "https://ndownloader.figshare.com/files/5976039",
            "sha256:614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            "covtype.data.gz",
        ),
    ),
    convert.forest_cover,
)
MOLECULES = File(
    "moses/moses_counts_1584663x68_uint8.npz",
    (
        Download(
            "https://media.githubusercontent.com/media/molecularsets/moses/master/data/train.csv",
            "sha256:49fe1aae29604ec0f5023ea34edc8789415f954138f2903dabd005a4b888a961",
            "moses-train.csv",
        ),
    ),
    convert.molecules,
)
CENSUS = File(
    "census/uscensus1990.npz",
    (Download("https://archive.ics.uci.edu/static/public/116/us+census+data+1990.zip", None, "us_census_data_1990.zip"),),
    convert.census,
)
SPECTRA = File(
    "spherical/psd_data_sigma3.npz",
    (
        Download(
            "https://raw.githubusercontent.com/deepsphere/deepsphere-cosmo-tf1/master/results/psd_data_sigma3.npz",
            "sha256:ea6742ab93d8aa4a4f7bdc71e06f38c4baea43f6670dad07809202eaa8d76c12",
            "psd_data_sigma3.npz",
        ),
    ),
)
