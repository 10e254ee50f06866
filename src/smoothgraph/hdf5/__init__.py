"""A process of its own for the HDF5 library: a damaged file or a full disk can crash the library, and then ends that process.

`io/h5ad.py` starts it as `python -m smoothgraph.hdf5`. In, on stdin: a request, and what is to be written. Out, on stdout: the
values that were asked for, and the message "done" or an error. It needs h5py and numpy, and nothing else of smoothgraph.

pipe.py is what both sides say to each other, read.py and write.py know the files of AnnData, __main__.py is the process.
"""
