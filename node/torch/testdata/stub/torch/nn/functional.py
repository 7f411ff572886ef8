"""Nothing."""


def __getattr__(name):
    return None
