"""Against a real server, whose URL STARLING_TEST_URL has: `go test ./sdk/python` starts one, which trains what is submitted."""

import asyncio
import os
import tempfile
import unittest

import starling

URL = os.environ.get("STARLING_TEST_URL", "")
JOB = """apiVersion: starling/v1
kind: TrainingJob
name: tiny
model:
  architecture: gpt2
  config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 64}
  tokenizer: byte-level
datasets: [{path: text.txt, format: text}]
val_set_size: 0.1
sequence_len: 32
training: {max_steps: 4, global_batch_size: 6, learning_rate: 1.0e-2, warmup_steps: 2}
strategy: {sync_steps: 4, workers: 3}
"""


@unittest.skipUnless(URL, "STARLING_TEST_URL names no server; run `go test ./sdk/python`")
class ServerTest(unittest.TestCase):
    def client(self) -> starling.Client:
        return starling.Client(URL, os.environ["STARLING_TEST_TOKEN"])

    def test_train(self):
        job = self.client().train(JOB, max_budget=7, training__max_steps=8)
        self.assertEqual((job.info.state, job.info.step, job.info.budget_uzen), ("done", 8, 7_000_000))
        metrics = job.metrics()
        self.assertEqual([m.step for m in metrics if m.kind == "step"], list(range(1, 9)))
        losses = [m.eval_loss for m in metrics if m.kind == "round"]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])
        with tempfile.TemporaryDirectory() as folder:
            paths = job.export(folder) + job.export(folder, files=["report.html", "metrics.jsonl"])
            self.assertTrue({"model.safetensors", "config.json", "report.html", "metrics.jsonl"} <= {p.name for p in paths})
            with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as f:
                self.assertEqual(len(f.readlines()), len(metrics))
        page = job._repr_html_()
        self.assertIn("<polyline", page)
        self.assertIn("done", page)

    def test_plan_submit_stream(self):
        client = self.client()
        plan = client.plan(JOB, max_budget=7)
        self.assertEqual((plan.name, plan.steps, plan.rounds, plan.workers), ("tiny", 4, 1, 3))
        self.assertTrue(0 < plan.cost <= 7)
        job = client.submit(JOB, max_budget=7, plan=plan, key="k1", name="planned")
        self.assertEqual((job.id, client.submit(JOB, max_budget=7, key="k1").id), ("planned", "planned"))
        self.assertEqual([m.step for m in job.stream()], [0, 1, 2, 3, 4, 4])
        self.assertIn(job.id, [j.id for j in client.jobs()])
        again = client.job(job.id).refresh()
        self.assertEqual((again.info.state, len(again.metrics())), ("done", 6))
        self.assertTrue(plan.id.startswith(again.info.job + "-"), plan.id)
        with self.assertRaises(starling.StarlingError) as e:
            again.cancel()
        self.assertEqual((e.exception.code, e.exception.status), ("JOB_OVER", 409))

    def test_cancel(self):
        job = self.client().submit(JOB, max_budget=7, training__max_steps=4000)
        self.assertIn(job.info.state, ("queued", "running"))
        with self.assertRaises(starling.JobFailed) as e:
            job.cancel().wait()
        self.assertEqual((job.info.state, e.exception.code), ("stopped", "cancelled"))

    def test_async(self):
        async def main():
            client = starling.AsyncClient(URL, os.environ["STARLING_TEST_TOKEN"])
            job = await client.submit(JOB, 7, key="k1", name="planned")
            steps = [m.step async for m in job.stream()]
            return job, steps

        job, steps = asyncio.run(main())
        self.assertEqual((job.info.state, steps), ("done", [0, 1, 2, 3, 4, 4]))

    def test_errors(self):
        with self.assertRaises(starling.StarlingError) as e:
            self.client().job("none")
        self.assertEqual((e.exception.code, e.exception.status), ("NOT_FOUND", 404))
        self.assertTrue(e.exception.request_id and e.exception.fix)
        with self.assertRaises(starling.StarlingError) as e:
            starling.Client(URL, "wrong" * 5).jobs()
        self.assertEqual(e.exception.code, "TOKEN_UNKNOWN")
        with self.assertRaises(starling.StarlingError) as e:
            self.client().submit(JOB, 7, training__max_step=3)
        self.assertEqual(e.exception.code, "JOB_INVALID")
        self.assertIn("max_steps", str(e.exception))
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(starling.NotSupported):
            self.client().submit(JOB, 7, key="unfinished").cancel().export(folder)


if __name__ == "__main__":
    unittest.main()
