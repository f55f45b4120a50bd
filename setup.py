"""The C extension, where there is a compiler; everything else is in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["src/native/build.py:builder"], options={"bdist_wheel": {"py_limited_api": "cp311"}})
