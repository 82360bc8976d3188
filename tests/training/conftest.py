"""Selects the part of the test matrix that runs."""


def pytest_addoption(parser):
    parser.addoption("--part", default="fast", help="fast, or the name of a model for all of its cells")
