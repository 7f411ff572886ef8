package foreign

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files under testdata")

// A configuration of each trainer becomes a job file without a fault, and what is not in it is said.
func TestConvert(t *testing.T) {
	for file, from := range map[string]Trainer{
		"axolotl.yaml": Axolotl, "llama-factory.yaml": LlamaFactory, "torchtitan.toml": Torchtitan,
		"hf-trainer.json": HFTrainer,
	} {
		t.Run(string(from), func(t *testing.T) {
			path := filepath.Join("testdata", file)
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			made, err := Convert(source, file)
			if err != nil {
				t.Fatal(err)
			}
			if made.From != from {
				t.Errorf("taken for one of %s", made.From)
			}
			got := append(bytes.Clone(made.File), []byte("\n# left:\n# "+strings.Join(made.Left, "\n# ")+"\n")...)
			golden := filepath.Join("testdata", string(from)+".golden")
			if *rewrite {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v; got\n%s", err, got)
			}
			if _, err := job.Parse(made.File, "made.yaml"); err != nil {
				t.Error(err)
			}
		})
	}
}

// An optimizer that is not AdamW as it is here is said to be another, also where AdamW takes its place.
func TestConvertSaysWhichOptimizer(t *testing.T) {
	for name, want := range map[string]string{
		"adamw_torch_fused": "", "AdamW": "", "adamw_bnb_8bit": "", "adamw_torch_4bit": "4 bits", "Adam": "weight decay",
		"adafactor": "", "lion_pytorch": "", "schedule_free_adamw": "the inner optimizer is adamw, sgd",
	} {
		made, err := Convert([]byte("base_model: ./base\nmicro_batch_size: 2\nmax_steps: 50\ndatasets: [{path: "+
			"a.jsonl}]\noptimizer: "+name+"\n"), "x")
		if err != nil {
			t.Fatal(err)
		}
		if left := strings.Join(made.Left, "\n"); want == "" && strings.Contains(left, "optimizer") ||
			!strings.Contains(left, want) {
			t.Errorf("%s: left %q, wanted %q", name, left, want)
		}
		if taken := strings.Contains(string(made.File), "optimizer:"); taken == strings.HasPrefix(want, "the inner") {
			t.Errorf("%s:\n%s", name, made.File)
		}
	}
}

// Epochs, ratios and lines are taken over as they are.
func TestConvertTakesEpochs(t *testing.T) {
	made, err := Convert([]byte("base_model: ./b\nmicro_batch_size: 2\nnum_epochs: 3\nwarmup_ratio: 0.1\n"+
		"lr_scheduler: linear\ndatasets: [{path: a.jsonl}]\n"), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Parse(made.File, "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := j.Training; n.NumEpochs != 3 || n.WarmupRatio != 0.1 || n.LRScheduler != "linear" || n.MaxSteps != 0 {
		t.Errorf("%+v, left %q", n, made.Left)
	}
}

// Every key of a configuration is taken over or said not to be.
func TestConvertDropsNothing(t *testing.T) {
	for trainer, all := range map[string]rules{"base_model: ./b\n": axolotl, "stage: sft\n": llamaFactory,
		"num_train_epochs: 1\n": trainer} {
		for key := range all {
			if key == "base_model" || key == "stage" || key == "num_train_epochs" || strings.Contains(key, ".") {
				continue
			}
			plain, err := Convert([]byte(trainer), "x.yaml")
			if err != nil {
				t.Fatal(err)
			}
			made, err := Convert([]byte(trainer+key+": 2\n"), "x.yaml")
			if _, refused := errors.AsType[*MethodError](err); refused {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(made.File, plain.File) && strings.Join(made.Left, "") == strings.Join(plain.Left, "") {
				t.Errorf("%s: 2 leaves no trace", key)
			}
		}
	}
}

// A job that trains by another method is not made into one that trains on text.
func TestConvertRefusesOtherMethods(t *testing.T) {
	for _, source := range []string{"base_model: ./b\nrl: kto\n", "stage: rm\ncutoff_len: 64\n",
		"stage: dpo\npref_loss: orpo\n", "per_device_train_batch_size: 2\nbeta: 0.1\nloss_type: hinge\n",
		"num_train_epochs: 1\nbeta: 0.1\n", "num_train_epochs: 1\nloss_type: sigmoid\ncpo_alpha: 1\n",
		"num_train_epochs: 1\nbeta: 0\nnum_generations: 8\n"} {
		_, err := Convert([]byte(source), "x.yaml")
		if _, refused := errors.AsType[*MethodError](err); !refused {
			t.Errorf("%q: %v", source, err)
		}
	}
}

// Training from preferences by DPO becomes a job of that task, whichever trainer it is written for.
func TestConvertPreferences(t *testing.T) {
	for _, source := range []string{"base_model: ./b\nrl: dpo\nrl_beta: 0.2\nmicro_batch_size: 1\n",
		"stage: dpo\nmodel_name_or_path: ./b\npref_beta: 0.2\npref_loss: sigmoid\n",
		"num_train_epochs: 1\nmodel_name_or_path: ./b\nbeta: 0.2\nloss_type: [sigmoid]\n"} {
		made, err := Convert([]byte(source), "x.yaml")
		if err != nil || !bytes.Contains(made.File, []byte("\ntask: dpo\ndpo:\n  beta: 0.2\n")) {
			t.Errorf("%q: %v\n%s", source, err, made)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	for name, source := range map[string]string{
		"nothing": "", "a list": "[1, 2]", "a job of ours": "apiVersion: starling/v1\nkind: TrainingJob\n", "text": "hello",
		"a number": "7",
	} {
		if _, err := Convert([]byte(source), "x"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := Convert([]byte("a: 1"), "x"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := Convert(make([]byte, MaxBytes+1), "x"); err == nil {
		t.Error("any length is taken")
	}
}

// Every configuration of a stranger becomes YAML for which the reader of job files has an answer.
func FuzzConvert(f *testing.F) {
	for _, file := range []string{"axolotl.yaml", "llama-factory.yaml", "torchtitan.toml", "hf-trainer.json"} {
		source, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		made, err := Convert(source, "x.yaml")
		if err != nil {
			return
		}
		var list *problem.ErrorList
		if _, err := job.Parse(made.File, "made.yaml"); err != nil && !errors.As(err, &list) {
			t.Errorf("%v", err)
		}
	})
}
