"""What part of the matrix runs."""


def pytest_addoption(parser):
    parser.addoption("--part", default="fast", help="fast, or the name of a model for all of its cells")
