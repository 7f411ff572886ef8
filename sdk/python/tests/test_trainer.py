"""The trainer: what jobs it makes, and, against the server that STARLING_TEST_URL names, that they train."""

import io
import json
import os
import tempfile
import unittest
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import starling
from starling import arguments, watch

URL = os.environ.get("STARLING_TEST_URL", "")
GPT2 = {"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 64, "attn_pdrop": 0.1}


class Config:
    """As a configuration object of transformers."""

    def __init__(self, **fields):
        self.fields = fields

    def to_dict(self):
        return self.fields


def made(**options):
    """The job that a trainer would submit, whose examples lie in a folder of the test."""
    options = {"model": GPT2, "train_dataset": ["a text", "another"], **options}
    return starling.Trainer(client=SimpleNamespace(_backend=None), **options).config


class ArgumentsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_defaults_of_transformers(self):
        args = Config(output_dir="out/my model", per_device_train_batch_size=8, gradient_accumulation_steps=1, learning_rate=5e-5, weight_decay=0.0, adam_beta1=0.9,
                      adam_beta2=0.999, adam_epsilon=1e-8, max_grad_norm=1.0, num_train_epochs=3.0, max_steps=-1, lr_scheduler_type=SimpleNamespace(value="linear"),
                      warmup_steps=0, warmup_ratio=0.0, save_steps=500, save_strategy="steps", eval_strategy="no", seed=42, optim="adamw_torch", fp16=False)
        job = made(args=args)
        self.assertEqual(job["name"], "my-model")
        self.assertEqual(job["training"], {
            "learning_rate": 5e-5, "optimizer": {"weight_decay": 0.0, "name": "adamw", "betas": [0.9, 0.999], "eps": 1e-8}, "max_grad_norm": 1.0,
            "lr_scheduler": "linear", "num_epochs": 3.0, "global_batch_size": 16})
        self.assertEqual((job["strategy"], job["checkpoint"], job["seed"]), ({"sync_steps": 20, "workers": 2}, {"every_steps": 500}, 42))
        self.assertNotIn("eval", job)
        self.assertEqual(job["model"], {"architecture": "gpt2", "config": {"n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2}, "tokenizer": "byte-level"})

    def test_steps_are_whole_rounds(self):
        job = made(args={"max_steps": 50, "eval_steps": 30, "eval_strategy": "steps", "gradient_accumulation_steps": 4, "per_device_train_batch_size": 2}, workers=3)
        self.assertEqual((job["training"]["max_steps"], job["eval"], job["strategy"]["sync_steps"]), (60, {"every_steps": 40}, 20))
        self.assertEqual((job["training"]["global_batch_size"], job["training"]["micro_batch_size"]), (24, 2))

    def test_adapters_and_budget(self):
        lora = SimpleNamespace(peft_type="LORA", r=16, lora_alpha=32, lora_dropout=0.05, target_modules={"q_proj", "k_proj"})
        job = made(model="base", peft_config=lora, max_budget=5, strategy__method="fedavg", sequence_len=64)
        self.assertEqual(job["model"], {"base_model": "base", "adapter": {"lora": {"r": 16, "alpha": 32, "dropout": 0.05, "target_modules": ["k_proj", "q_proj"]}}})
        self.assertEqual((job["budget"], job["strategy"]["method"], job["sequence_len"]), ({"max_cost": 5}, "fedavg", 64))

    def test_what_a_job_has_not(self):
        with self.assertWarnsRegex(UserWarning, "fp16=True is left out: training is exact in float32"):
            made(args={"fp16": True})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made(args={"fp16": False, "deepspeed": None, "logging_steps": 10})
        for options, why in (({"args": {"optim": "galore_adamw"}}, "galore_adamw"), ({"args": {"lr_scheduler_type": "polynomial"}}, "polynomial"),
                             ({"model": {"model_type": "t5"}}, "t5"), ({"args": {"beta": 0.1, "loss_type": "hinge"}}, "hinge"), ({"args": {"num_generations": 8}}, "GRPO"), ({"peft_config": {"peft_type": "IA3"}}, "IA3"), ({"train_dataset": []}, "no rows"),
                             ({"train_dataset": [{"input_ids": [1]}]}, "input_ids"), ({"train_dataset": [{"label": 1}]}, "label"),
                             ({"train_dataset": ["a", {"prompt": "a", "completion": "b"}]}, "row 1"), ({"train_dataset": None}, "train_dataset")):
            with self.subTest(why), self.assertRaisesRegex(ValueError, why):
                made(**options)

    def test_examples(self):
        class Numbered:
            """As a Dataset of torch."""

            def __len__(self):
                return 2

            def __getitem__(self, i):
                return {"prompt": str(i), "completion": str(i + 1), "more": 7}

        class Frame:
            """As a DataFrame of pandas."""

            def iterrows(self):
                raise AssertionError

            def to_dict(self, orient):
                return [{"prompt": "a", "chosen": "b", "rejected": "c"}] * (orient == "records")

        for rows, task, first in ((Numbered(), "sft", {"prompt": "0", "completion": "1"}), (Frame(), "dpo", {"prompt": "a", "chosen": "b", "rejected": "c"}),
                                  (iter([{"text": "é"}]), "language", {"text": "é"}), ([{"messages": [{"role": "user", "content": "a"}]}], "sft", None)):
            job = made(train_dataset=rows)
            self.assertEqual(job["task"], task)
            line = json.loads(Path(job["datasets"][0]["path"]).read_text(encoding="utf-8").splitlines()[0])
            self.assertEqual(line, first or {"messages": [{"role": "user", "content": "a"}]})
        self.assertEqual(made(train_dataset=["a"]), made(train_dataset=[{"text": "a"}]))
        self.assertEqual([p.name for p in Path(arguments_data()).iterdir() if p.suffix == ".part"], [])

    def test_saved_objects(self):
        class Pretrained:
            def state_dict(self):
                raise AssertionError

            def save_pretrained(self, folder):
                Path(folder, "tokenizer.json").write_text("{}")

        job = made(model=Pretrained(), tokenizer=Pretrained())
        self.assertTrue(Path(job["model"]["base_model"], "tokenizer.json").is_file())
        self.assertTrue(Path(job["model"]["tokenizer"]).is_file())


def arguments_data():
    from starling import trainer
    return trainer.DATA


class WatchTest(unittest.TestCase):
    def test_lines(self):
        out, now = io.StringIO(), iter([0.0, 0.1, 0.3, 0.35])
        view = watch.View(out, lambda: next(now))
        metrics = [starling.Metric(step=1, loss=2.5)]
        for step, state in ((1, "running"), (2, "running"), (3, "running"), (4, "done")):
            view.show(starling.JobInfo(id="a", state=state, step=step, steps=4, paid_uzen=step * 1_000_000), metrics)
        self.assertEqual(out.getvalue().splitlines(), [
            "a: running, step 1 of 4, loss 2.5000, 1.000000 ZEN", "a: running, step 3 of 4, loss 2.5000, 3.000000 ZEN", "a: done, step 4 of 4, loss 2.5000, 4.000000 ZEN"])

    def test_coin(self):
        coin = {"denom": "ibc/A", "symbol": "dai", "decimals": 18}
        info = starling.JobInfo(id="a", state="done", paid_uzen=2_000_000_000, fee_uzen=500_000_000, coin=coin)
        self.assertEqual((info.cost, info.currency), (2.5, "DAI"))
        self.assertEqual(starling.Plan(cost_uzen=3_000_000_000, coin=coin).cost, 3.0)
        self.assertIn("2.500000 DAI", watch.line(info, []))

    def test_notebook(self):
        shown = []
        handle = SimpleNamespace(update=lambda page: shown.append(page))
        module = SimpleNamespace(HTML=str, display=lambda page, display_id: handle)
        ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1), display=module)
        with mock.patch.dict("sys.modules", {"IPython": ipython, "IPython.display": module}):
            view = watch.View()
        view.show(starling.JobInfo(id="<a>", state="done", step=2, steps=2), [starling.Metric(step=1, loss=2.0), starling.Metric(step=2, loss=1.0)])
        self.assertIn("&lt;a&gt;", shown[0])
        self.assertIn("<polyline", shown[0])

    def test_interrupt_cancels(self):
        class Backend:
            cancelled = False

            def updates(self, id, end=None):
                yield starling.JobInfo(id=id, state="running"), []
                raise KeyboardInterrupt

            def cancel(self, id):
                self.cancelled = True
                return starling.JobInfo(id=id, state="stopped")

        backend = Backend()
        with self.assertRaises(KeyboardInterrupt):
            starling.Job(backend, starling.JobInfo(id="a")).watch(view=watch.View(io.StringIO()))
        self.assertTrue(backend.cancelled)


@unittest.skipUnless(URL, "STARLING_TEST_URL names no server; run `go test ./sdk/python`")
class TrainingTest(unittest.TestCase):
    def setUp(self):
        self.client = starling.Client(URL, os.environ["STARLING_TEST_TOKEN"])
        self.rows = [{"prompt": f"{i} + 1 = ", "completion": f"{i + 1}."} for i in range(60)]

    def trainer(self, **options):
        args = {"max_steps": 8, "per_device_train_batch_size": 4, "learning_rate": 1e-2, "run_name": "sums", "lr_scheduler_type": "constant", "save_steps": 500}
        return starling.Trainer(GPT2, args, self.rows, client=self.client, max_budget=7, sequence_len=16, **options)

    def test_train(self):
        heard = []

        class Listener:
            def on_log(self, args, state, control, logs=None, **_):
                heard.append((state.global_step, dict(logs)))

        t = self.trainer(callbacks=[Listener()])
        self.assertEqual(t.plan().steps, 8)
        with self.assertRaises(starling.StarlingError):
            t.save_model("model")
        with mock.patch("sys.stderr", io.StringIO()) as told:
            out = t.train()
        self.assertIn("done, step 8 of 8", told.getvalue())
        self.assertEqual((out.global_step, len([s for s, logs in heard if "loss" in logs])), (8, 8))
        self.assertEqual([e["step"] for e in t.state.log_history if "loss" in e], list(range(1, 9)))
        self.assertAlmostEqual(out.training_loss, sum(e["loss"] for e in t.state.log_history if "loss" in e) / 8)
        self.assertEqual(t.evaluate(), {"eval_loss": out.metrics["eval_loss"]})
        self.assertGreater(out.metrics["cost"], 0)
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("model.safetensors", {p.name for p in t.save_model(folder)})

    def test_a_callback_stops_it(self):
        class Stops:
            def on_log(self, args, state, control, **_):
                control.should_training_stop = True

        t = self.trainer(callbacks=[Stops()], training__max_steps=8000)
        with mock.patch("sys.stderr", io.StringIO()), self.assertRaises(starling.JobFailed) as e:
            t.train()
        self.assertEqual((e.exception.code, t.job.info.state), ("cancelled", "stopped"))

    def test_what_a_server_takes(self):
        with self.assertRaises(starling.NotSupported):
            starling.Trainer(GPT2, train_dataset=["a text"], client=self.client)
        with self.assertRaises(starling.StarlingError) as e:
            starling.Trainer(GPT2, train_dataset=[{"messages": []}], client=self.client)
        self.assertIn("line 1", str(e.exception))


if __name__ == "__main__":
    unittest.main()
