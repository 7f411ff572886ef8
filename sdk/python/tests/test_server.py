"""Against a real server, whose URL STARLING_TEST_URL has: `go test ./sdk/python` starts one. It trains nothing: a job that is
submitted to it writes its files at once."""

import asyncio
import os
import tempfile
import unittest
from pathlib import Path

import starling

URL = os.environ.get("STARLING_TEST_URL", "")
JOB = "name: tiny\n"


@unittest.skipUnless(URL, "STARLING_TEST_URL names no server; run `go test ./sdk/python`")
class ServerTest(unittest.TestCase):
    def client(self) -> starling.Client:
        return starling.Client(URL, os.environ["STARLING_TEST_TOKEN"])

    def test_train(self):
        job = self.client().train(JOB, max_budget=7, training__max_steps=8)
        self.assertEqual(job.info.state, "done")
        metrics = job.metrics()
        self.assertEqual([m.step for m in metrics if m.kind == "step"], list(range(1, 9)))
        self.assertEqual([m.eval_loss for m in metrics if m.kind == "round"], [5.5, 4.5, 4.0])
        page = job._repr_html_()
        self.assertIn("<polyline", page)
        self.assertIn("done", page)

    def test_plan_submit_stream(self):
        client = self.client()
        plan = client.plan(JOB, max_budget=7)
        self.assertEqual((plan.name, plan.cost), ("tiny", 2.5))
        job = client.submit(JOB, max_budget=7, plan=plan, key="k1")
        self.assertEqual(client.submit(JOB, max_budget=7, key="k1").id, job.id)
        self.assertEqual(len(list(job.stream())), 11)
        self.assertIn(job.id, [j.id for j in client.jobs()])
        self.assertEqual(client.job(job.id).refresh().info.eval_loss, 4.0)
        self.assertEqual(len(client.job(job.id).metrics()), 11)

    def test_async(self):
        async def main():
            client = starling.AsyncClient(URL, os.environ["STARLING_TEST_TOKEN"])
            job = await client.submit(JOB, 7)
            steps = [m.step async for m in job.stream()]
            return job, steps

        job, steps = asyncio.run(main())
        self.assertEqual((job.info.state, len(steps)), ("done", 11))

    def test_errors(self):
        with self.assertRaises(starling.StarlingError) as e:
            self.client().job("none")
        self.assertEqual((e.exception.code, e.exception.status), ("NOT_FOUND", 404))
        self.assertTrue(e.exception.request_id and e.exception.fix)
        with self.assertRaises(starling.StarlingError) as e:
            starling.Client(URL, "wrong" * 5).jobs()
        self.assertEqual(e.exception.code, "TOKEN_UNKNOWN")
        with self.assertRaises(starling.StarlingError) as e:
            self.client().submit("name: broken\n")
        self.assertEqual(e.exception.code, "JOB_INVALID")
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(starling.NotSupported):
            self.client().submit(JOB, 7).wait().export(folder)


if __name__ == "__main__":
    unittest.main()
