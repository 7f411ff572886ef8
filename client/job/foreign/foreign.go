// Package foreign turns the training configurations of other trainers into job files: YAML of Axolotl and of
// LLaMA-Factory, TOML of torchtitan, and the arguments of Hugging Face's Trainer.
//
// Every key that is not taken over is listed, with the reason. It looks at no file that a configuration names.
package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	yaml "go.yaml.in/yaml/v3"
)

// MaxBytes bounds a configuration.
const MaxBytes = 1 << 20

// ErrUnknown says that a file is none of the configurations that are known.
var ErrUnknown = errors.New("foreign: not a configuration of Axolotl, LLaMA-Factory, torchtitan or Hugging Face's " +
	"Trainer")

// MethodError says that a configuration is of a method of training that is not converted. A job made of it would train
// something else.
type MethodError struct{ Method string }

func (e *MethodError) Error() string {
	return fmt.Sprintf("it trains by %s, which is not converted: pretraining, supervised fine-tuning and DPO are",
		e.Method)
}

// Trainer names whose configuration a file is.
type Trainer string

// The trainers.
const (
	Axolotl      Trainer = "axolotl"
	LlamaFactory Trainer = "llama-factory"
	Torchtitan   Trainer = "torchtitan"
	HFTrainer    Trainer = "hf-trainer"
)

// Job is a job file that was made of another trainer's configuration.
type Job struct {
	From Trainer
	File []byte   // YAML
	Left []string // keys that were not taken over, each with the reason, in order of their names
}

// Read reads the file of a configuration, or standard input for "-", up to one byte more than any may have.
func Read(path string) ([]byte, error) {
	f := os.Stdin
	if path != "-" {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// Convert reads the configuration of another trainer. Name is that of the job.
func Convert(source []byte, name string) (*Job, error) {
	if len(source) > MaxBytes {
		return nil, fmt.Errorf("foreign: a configuration of %d bytes, at most %d are read", len(source), MaxBytes)
	}
	said, err := read(source)
	if err != nil {
		return nil, err
	}
	from, rules := recognise(said)
	if from == "" {
		return nil, ErrUnknown
	}
	b := &builder{job: map[string]any{}}
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if value := said[key]; value != nil {
			rules.apply(b, key, value)
		}
	}
	if b.refused == nil {
		b.finish()
	}
	if b.refused != nil {
		return nil, b.refused
	}
	file, err := b.write(from, name)
	if err != nil {
		return nil, err
	}
	slices.Sort(b.left)
	return &Job{From: from, File: file, Left: b.left}, nil
}

// read returns the settings of a file of TOML, JSON or YAML, those of its sections with the name of the section before
// them: training.steps.
func read(source []byte) (map[string]any, error) {
	var tree map[string]any
	var errs []error
	for _, parse := range []func([]byte, any) error{toml.Unmarshal, json.Unmarshal, yaml.Unmarshal} {
		tree = nil
		err := parse(source, &tree)
		if err == nil && len(tree) > 0 {
			flat := map[string]any{}
			flatten(flat, "", tree)
			return flat, nil
		}
		errs = append(errs, err)
	}
	if err := errs[len(errs)-1]; err != nil { // YAML has JSON in it, and its errors have lines
		return nil, fmt.Errorf("foreign: neither TOML nor JSON nor YAML: %w", err)
	}
	return nil, ErrUnknown
}

func flatten(into map[string]any, prefix string, tree map[string]any) {
	for key, value := range tree {
		if section, ok := value.(map[string]any); ok && len(section) > 0 {
			flatten(into, prefix+key+".", section)
			continue
		}
		into[prefix+key] = value
	}
}

// recognise tells whose configuration it is by keys that only that trainer has.
func recognise(said map[string]any) (Trainer, rules) {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, ok := said[k]; return ok })
	}
	switch {
	case has("apiVersion"): // a job file
	case has("training.steps", "model.flavor", "job.dump_folder"):
		return Torchtitan, torchtitan
	case has("stage", "finetuning_type", "cutoff_len", "dataset_dir"):
		return LlamaFactory, llamaFactory
	case has("base_model", "micro_batch_size", "sequence_len"):
		return Axolotl, axolotl
	case has("per_device_train_batch_size", "num_train_epochs", "lr_scheduler_type", "save_total_limit"):
		return HFTrainer, trainer
	}
	return "", nil
}

// write is the job file, with its sections in the order in which people read them.
func (b *builder) write(from Trainer, name string) ([]byte, error) {
	b.set("name", strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range []string{"apiVersion", "kind", "name", "task", "dpo", "seed", "model", "datasets", "val_set_size",
		"sequence_len", "sample_packing", "training", "strategy", "checkpoint", "eval", "output"} {
		value, ok := b.job[key]
		if !ok {
			continue
		}
		k, v := new(yaml.Node), new(yaml.Node)
		if err := errors.Join(k.Encode(key), v.Encode(value)); err != nil {
			return nil, fmt.Errorf("foreign: %s: %w", key, err)
		}
		out.Content = append(out.Content, k, v)
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, "# Made of a configuration of %s by `starling job import`.\n", from)
	e := yaml.NewEncoder(&w)
	e.SetIndent(2)
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("foreign: %w", err)
	}
	return w.Bytes(), nil
}
