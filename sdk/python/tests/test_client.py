"""What needs no Starling: answers that break off or fail are made by a server of the test."""

import asyncio
import http.server
import json
import os
import stat
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import starling
from starling import watch


class Broken(http.server.BaseHTTPRequestHandler):
    """Answers each request with the next of the prepared answers."""

    answers: list = []
    seen: list = []

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers), body))
        status, headers, text = self.answers.pop(0)
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET

    def log_message(self, *_):
        pass


def event(id, kind, state, steps):
    job = {"id": "a", "state": state, "step": steps[-1] if steps else 0}
    return f"id: {id}\nevent: {kind}\ndata: {json.dumps({'job': job, 'metrics': [{'kind': 'step', 'step': s, 'loss': 1.0, 'new': 1} for s in steps]})}\n\n"


class RetryTest(unittest.TestCase):
    def setUp(self):
        Broken.answers, Broken.seen = [], []
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Broken)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.client = starling.Client(f"http://127.0.0.1:{self.server.server_port}", "secret-of-the-test")

    def test_stream_goes_on_where_it_broke(self):
        Broken.answers = [
            (200, {}, json.dumps({"id": "a"})),
            (200, {}, ": alive\n\nretry: 1000\n\n" + event("3.0.0.", "update", "running", [1, 2, 3]) + "id: 4.0.0.\nevent: upd"),
            (503, {}, json.dumps({"code": "TOO_MANY_STREAMS", "retryable": True})),
            (200, {}, event("5.0.0.", "update", "running", [4, 5])),
            (200, {}, event("6.0.0.", "update", "done", [6])),
        ]
        job = self.client.job("a")
        self.assertEqual([m.step for m in job.stream()], [1, 2, 3, 4, 5, 6])
        self.assertEqual([h.get("Last-Event-Id", h.get("Last-event-id")) for _, _, h, _ in Broken.seen[1:]], ["0.0.0.", "3.0.0.", "3.0.0.", "5.0.0."])
        self.assertEqual(Broken.seen[1][2]["Authorization"], "Bearer secret-of-the-test")

    def test_busy_server_is_asked_again_with_the_same_key(self):
        Broken.answers = [(429, {"Retry-After": "0"}, "{}"), (503, {}, "no JSON"), (200, {}, json.dumps({"id": "a", "state": "queued"}))]
        self.assertEqual(self.client.submit("name: a\n", max_budget=3, training__max_steps=5, labels={"team": "x"}).id, "a")
        keys = {h["Idempotency-Key"] for _, _, h, _ in Broken.seen}
        self.assertEqual((len(Broken.seen), len(keys)), (3, 1))
        self.assertEqual(json.loads(Broken.seen[0][3])["set"], ["training.max_steps=5", 'labels={"team": "x"}', "budget.max_cost=3"])

    def test_problems_are_told(self):
        Broken.answers = [(422, {}, json.dumps({"code": "JOB_INVALID", "detail": "1 error", "fix": "see there", "request_id": "r1"}))]
        with self.assertRaises(starling.StarlingError) as e:
            self.client.plan("name: a\n")
        self.assertEqual(str(e.exception), "1 error [JOB_INVALID]; see there (request r1)")

    def test_failed_job(self):
        Broken.answers = [
            (200, {}, json.dumps({"id": "a"})),
            (200, {}, event("1.0.0.", "update", "failed", []).replace('"step": 0', '"reason": {"code": "NO_DATA", "text": "it is gone", "next": "bring it back"}')),
        ]
        with self.assertRaises(starling.JobFailed) as e:
            self.client.job("a").wait()
        self.assertEqual((e.exception.code, e.exception.fix), ("NO_DATA", "bring it back"))
        self.assertIn("it is gone", str(e.exception))

    def test_wait_ends_though_nothing_is_heard(self):
        told = threading.Event()
        self.addCleanup(told.set)

        class Silent(Broken):
            """Knows a job that is queued, and says no more than that it is alive."""

            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                if not self.path.endswith("/events"):
                    self.wfile.write(json.dumps({"id": "a", "state": "queued"}).encode())
                    return
                self.wfile.write(b": alive\n\n")
                self.wfile.flush()
                if not told.wait(30):
                    self.wfile.write(event("1.0.0.", "update", "done", [1]).encode())

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(told.set)
        url = f"http://127.0.0.1:{server.server_port}"
        with self.assertRaises(TimeoutError) as e:
            starling.Client(url).job("a").wait(0.3)
        self.assertIn("a is queued at step 0", str(e.exception))

        async def waits():
            return await (await starling.AsyncClient(url).job("a")).wait(0.3)

        with self.assertRaises(TimeoutError):
            asyncio.run(waits())

    def test_wait_hears_all_in_its_time(self):
        Broken.answers = [
            (200, {}, json.dumps({"id": "a"})),
            (200, {}, event("1.0.0.", "update", "running", [1])),
            (200, {}, event("2.0.0.", "update", "done", [2])),
        ]
        job = self.client.job("a").wait(60)
        self.assertEqual((job.info.state, [m.step for m in job.metrics()]), ("done", [1, 2]))

    def test_export(self):
        listed = {"files": [{"name": "config.json", "kind": "model"}, {"name": "adapter/x.json", "kind": "model"}, {"name": "report.html", "kind": "record"}]}
        Broken.answers = [(200, {}, json.dumps({"id": "a"})), (200, {}, json.dumps(listed)), (200, {}, "{}"), (200, {}, "[1]")]
        with tempfile.TemporaryDirectory() as folder:
            paths = self.client.job("a").export(folder)
            self.assertEqual([p.read_text() for p in paths], ["{}", "[1]"])
            listed["files"] = [{"name": "../evil", "kind": "model"}]
            Broken.answers = [(200, {}, json.dumps({"id": "a"})), (200, {}, json.dumps(listed))]
            with self.assertRaises(starling.StarlingError):
                self.client.job("a").export(folder)

    def test_unreachable(self):
        with self.assertRaises(ValueError):
            starling.Client("localhost:80")
        self.server.socket.close()


PROGRAM = f"""#!{sys.executable}
import json, os, signal, sys
args = sys.argv[1:]
config = open(args[1]).read()
if "--dry-run" in args:
    if "broken" in config:
        print(json.dumps({{"error": {{"code": "JOB_INVALID", "message": "it is broken", "fix": "mend it"}}}}), file=sys.stderr)
        sys.exit(2)
    print(json.dumps({{"id": "job-1", "name": "tiny", "steps": 5, "most_uzen": 3500000, "notes": [args[args.index("--set") + 1]]}}))
    sys.exit(0)
if "idle" in config:
    signal.pause()
out = args[args.index("--dir") + 1]
os.makedirs(out)
def write(name, *lines):
    with open(os.path.join(out, name), "a") as f:
        f.write("".join(json.dumps(l) + "\\n" for l in lines))
write("run.json", {{"id": "job-1"}})
write("metrics.jsonl", {{"kind": "round", "step": 0, "eval_loss": 5.0}}, {{"kind": "step", "round": 1, "step": 1, "loss": 4.0}})
if "broken" in config:
    print(json.dumps({{"error": {{"code": "RUN_HALTED", "message": "it stopped", "fix": "start it"}}}}), file=sys.stderr)
    sys.exit(11)
write("config.json", {{"set": args[args.index("--set") + 1], "plan": args[args.index("--plan") + 1] if "--plan" in args else ""}})
write("summary.json", {{"name": "tiny", "rounds": 1, "steps": 1, "state_root": "ab"}})
"""


class LocalTest(unittest.TestCase):
    """With a program that behaves as `starling train`; cmd/starling tests the real one."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        root = Path(self.folder.name)
        program = root / "starling"
        program.write_text(PROGRAM)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.job = root / "job.yaml"
        self.job.write_text("name: tiny\n")
        self.out = root / "out"
        self.client = starling.Client(binary=str(program), folder=str(self.out))

    def test_train_and_export(self):
        job = self.client.train(str(self.job), max_budget=2)
        self.assertEqual((job.id, job.info.state, job.info.state_root, job.info.eval_loss), ("tiny", "done", "ab", 5.0))
        self.assertEqual([m.kind for m in job.metrics()], ["round", "step"])
        paths = job.export(self.out / "copy")
        self.assertEqual(json.loads(paths[0].read_text())["set"], "budget.max_cost=2")
        self.assertEqual([p.name for p in self.job.parent.glob(".starling-*")], [])
        second = self.client.submit(self.job, 2)
        self.assertEqual((second.id, second.wait().info.state), ("tiny-2", "done"))

    def test_plan(self):
        plan = self.client.plan(self.job, 2)
        self.assertEqual((plan.id, plan.steps, plan.cost, plan.notes), ("job-1", 5, 3.5, ["budget.max_cost=2"]))
        job = self.client.submit(self.job, 2, plan=plan).wait()
        self.assertEqual(json.loads((self.out / job.id / "config.json").read_text())["plan"], "job-1")
        with self.assertRaises(starling.StarlingError) as e:
            self.client.plan({"name": "tiny", "model": "broken"}, 2)
        self.assertEqual((e.exception.code, e.exception.fix), ("JOB_INVALID", "mend it"))
        self.assertEqual([p.name for p in self.job.parent.glob(".starling-*")], [])

    def test_wait_ends_though_nothing_happens(self):
        job = self.client.submit({"name": "idle"}, 2)
        with self.assertRaises(TimeoutError):
            job.wait(0.3)
        job.cancel()

    def test_asyncio(self):
        async def train():
            client = starling.AsyncClient(binary=str(self.job.parent / "starling"), folder=str(self.out))
            plan = await client.plan(self.job, 2)
            job = await (await client.submit(self.job, 2, plan=plan)).wait(60)
            return plan.id, job.info.state, [p.name for p in await job.export(self.out / "copy")]

        self.assertEqual(asyncio.run(train()), ("job-1", "done", ["config.json"]))

    def test_failure_has_the_program_s_reason(self):
        with self.assertRaises(starling.JobFailed) as e:
            self.client.train({"name": "tiny", "model": "broken"}, 2)
        self.assertEqual((e.exception.code, e.exception.fix), ("RUN_HALTED", "start it"))

    def test_refusals(self):
        with self.assertRaises(starling.NotSupported):
            starling.Client(binary="no-such-program")
        with self.assertRaises(starling.StarlingError):
            self.client.job("none")
        with self.assertRaises(starling.StarlingError):
            self.client.submit("no-such-file.yaml")
        with self.assertRaises(ValueError):
            self.client.submit(self.job, name="../out")

    def test_curve_is_thinned(self):
        line = watch._curve([(i, 1.0 / (i + 1)) for i in range(100_000)])
        self.assertLess(len(line), 20_000)
        self.assertEqual(watch._curve([(1, 2.0)]), "")


SERVER = """#!{python}
import http.server, json, os, sys, threading

arguments = sys.argv[1:]
if arguments[arguments.index("--home") + 1] == "broke":
    print("a line")
    print(json.dumps({{"error": {{"code": "HOME_IN_USE", "message": "another process uses it", "fix": "stop it"}}}}), file=sys.stderr)
    sys.exit(5)
tokens = arguments[arguments.index("--token-file") + 1]
token, mode = open(tokens).read().split()[0], os.stat(tokens).st_mode & 0o777


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.headers["Authorization"] == "Bearer " + token and mode == 0o600
        body = json.dumps({{"id": self.path, "name": " ".join(arguments), "state": "done" if known else "failed"}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
print("dashboard: http://127.0.0.1:%d" % server.server_port, file=sys.stderr, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
open(arguments[1] + "/ended", "w").close()
"""


class GatewayTest(unittest.TestCase):
    """The server that a client of a network starts is a program of the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.binary = self.folder / "starling"
        self.binary.write_text(SERVER.format(python=sys.executable))
        self.binary.chmod(self.binary.stat().st_mode | stat.S_IXUSR)

    def client(self, home="me", **more):
        return starling.Client(network="http://127.0.0.1:1", home=home, binary=str(self.binary), folder=str(self.folder / "out"), **more)

    def test_server_is_started_and_ended(self):
        with self.client(data=str(self.folder)) as client:
            job = client.submit("a: 1\nb: 2\n", key="k")
            self.assertEqual((job.id, job.info.state), ("/v1/jobs", "done"))
            self.assertIn(f"--network http://127.0.0.1:1 --home me --data {self.folder} ", job.info.name)
            self.assertEqual(client.job("x").id, "/v1/jobs/x")
            self.assertFalse((self.folder / "out" / "ended").exists())
        self.assertTrue((self.folder / "out" / "ended").exists())

    def test_data_is_beside_the_first_job_file(self):
        other = self.folder / "other"
        other.mkdir()
        for place in (self.folder, other):
            (place / "job.yaml").write_text("a: 1\n")
        with self.client() as client:
            self.assertIn(f"--data {other} ", client.submit(other / "job.yaml").info.name)
            with self.assertRaises(starling.StarlingError) as e:
                client.submit(self.folder / "job.yaml")
            self.assertEqual(e.exception.code, "OTHER_DATA")

    def test_refusals(self):
        with self.assertRaises(starling.StarlingError) as e:
            self.client(home=None)
        self.assertEqual(e.exception.code, "HOME_NEEDED")
        with self.assertRaises(starling.StarlingError) as e:
            starling.Client(network="http://127.0.0.1:1", home="me", binary=str(self.folder / "nothing"))
        self.assertEqual(e.exception.code, "NO_BINARY")
        with self.assertRaises(ValueError):
            starling.Client("http://127.0.0.1:2", network="http://127.0.0.1:1", home="me")
        with self.client(home="broke") as client, self.assertRaises(starling.StarlingError) as e:
            client.jobs()
        self.assertEqual((e.exception.code, e.exception.fix), ("HOME_IN_USE", "stop it"))


if __name__ == "__main__":
    unittest.main()
