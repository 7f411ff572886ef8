"""A torch without arithmetic: whatever is asked of it is this one thing again."""


class Thing:
    shape, dtype, type = (), None, "cpu"

    def __call__(self, *args, **named):
        return self

    def __getattr__(self, name):
        return self

    def __str__(self):
        return "cpu"


__version__ = "stub"
thing = Thing()


def device(name):
    if name != "cpu":
        raise RuntimeError("there is no device " + name)
    return thing


def __getattr__(name):
    return thing
