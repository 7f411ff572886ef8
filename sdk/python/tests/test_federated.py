"""The sides of federated jobs as processes: here a program of the test takes the place of starling."""

import os
import stat
import tempfile
import unittest
from pathlib import Path

import starling
from starling import federated

PROGRAM = """#!/usr/bin/env python3
import json, os, sys
a = sys.argv[1:]
at = lambda flag: a[a.index(flag) + 1]
print("10:00:00 hello", file=sys.stderr, flush=True)
if a[2] == "ledger":
    print(json.dumps({"owner": "ab", "epsilon": None, "example_epsilon": 1.5, "delta": 1e-5, "jobs": [{"job": "c"}], "new": 1}))
elif a[2] == "join" and "--epsilon" in a and float(at("--epsilon")) < 1:
    print(json.dumps({"error": {"code": "PRIVACY_BUDGET", "message": "nothing was sent", "fix": "raise it"}}), file=sys.stderr)
    sys.exit(6)
elif a[2] == "join":
    folder = at("--data")
    files = sorted(os.path.relpath(os.path.join(d, n), folder) for d, _, names in os.walk(folder) for n in names)
    text = open(os.path.join(folder, files[0])).read()
    print(json.dumps({"job": text, "name": folder, "owner": " ".join(a), "examples": len(files), "epsilon": 2.0}))
elif a[2] == "serve" and a[3] == "broken.yaml":
    print("cannot read broken.yaml", file=sys.stderr)
    sys.exit(2)
else:
    print("10:00:01 job 12ab at http://127.0.0.1:7001", file=sys.stderr, flush=True)
    print(json.dumps({"job": "12ab", "rounds": 3, "example": {"epsilon": 4.0}, "assumptions": [" ".join(a)]}))
"""


class FederatedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, "starling")
        Path(self.program).write_text(PROGRAM)
        os.chmod(self.program, os.stat(self.program).st_mode | stat.S_IXUSR)
        self.owner = federated.Owner(os.path.join(folder.name, "home"), self.program)

    def test_rows_are_written_and_removed(self):
        rows = {"a/notes.jsonl": ({"text": t, "label": "x"} for t in ("one", "zwölf"))}
        part = self.owner.join("http://c", rows=rows, budget=federated.Budget(8, unit="example"), threads=2)
        done = part.wait()
        self.assertEqual(done.job, '{"text": "one", "label": "x"}\n{"text": "zwölf", "label": "x"}\n')
        self.assertEqual((done.examples, done.epsilon, done.example_epsilon), (1, 2.0, None))
        self.assertFalse(os.path.exists(done.name))
        self.assertIn("--epsilon 8.0 --delta 1e-05 --unit example --threads 2", done.owner)
        self.assertEqual(part.log, ["10:00:00 hello"])
        self.assertFalse(os.path.exists(self.owner.join("http://c", rows={"b.jsonl": []}).wait().name))

    def test_refusals(self):
        with self.assertRaises(starling.StarlingError) as e:
            self.owner.join("http://c", rows={"b.jsonl": []}, budget=federated.Budget(0.5)).wait()
        self.assertEqual((e.exception.code, e.exception.fix), ("PRIVACY_BUDGET", "raise it"))
        for rows in ({"../b.jsonl": []}, {"/b.jsonl": []}):
            with self.assertRaises(ValueError):
                self.owner.join("http://c", rows=rows)
        with self.assertRaises(ValueError):
            self.owner.join("http://c")
        with self.assertRaises(starling.NotSupported):
            federated.Owner("x", "no-such-program")
        with self.assertRaises(starling.StarlingError):
            federated.Coordinator("broken.yaml", "out", binary=self.program)

    def test_ledger_and_coordinator(self):
        ledger = self.owner.ledger()
        self.assertEqual((ledger.owner, ledger.epsilon, ledger.example_epsilon, len(ledger.jobs)), ("ab", None, 1.5, 1))
        with federated.Coordinator("job.yaml", "out", binary=self.program, federated__clip=2, name="x") as c:
            self.assertEqual(c.url, "http://127.0.0.1:7001")
            report = c.wait()
        self.assertEqual((report.rounds, report.example), (3, {"epsilon": 4.0}))
        self.assertIn('--set federated.clip=2 --set name="x"', report.assumptions[0])
