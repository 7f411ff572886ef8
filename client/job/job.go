// Package job reads job files: strict YAML with the keys of `apiVersion: starling/v1, kind: TrainingJob`.
//
// Everything wrong with a file is found at once, each with its line and column, the reason and the fix; nothing is
// ignored silently. The package is the only place that knows a default. It does not know models, tokenizers or
// prices: whoever checks those reports back with Job.Problem, so that the user sees the line all the same.
package job

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	yaml "go.yaml.in/yaml/v3"
)

// MaxFileBytes bounds the size of a job file.
const MaxFileBytes = 1 << 20

// Job is a job file with its defaults filled in.
type Job struct {
	Spec
	Path      string   // of the job file, as given
	Source    []byte   // the file as read; Parse(Source, Path, Overrides...) gives the same job
	Overrides []string // key=value, applied in order
	Notes     []Note   // accepted settings that have no effect on this run

	marks map[string]mark
}

// Load reads a job file, applies overrides of the form training.learning_rate=1e-4 (the value is YAML; elements of
// lists are numbered from 0: datasets.0.path=...), and checks that the files it names exist. The error is an
// *ErrorList.
func Load(path string, overrides ...string) (*Job, error) {
	j, err := Read(path, overrides...)
	if err == nil {
		err = j.CheckFiles()
	}
	if err != nil {
		return nil, err
	}
	return j, nil
}

// Read is Load without looking for the files that the job names.
func Read(path string, overrides ...string) (*Job, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		why := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			why = "there is no such file"
		}
		return nil, list([]*Error{{Code: CodeFileNotFound, File: path, What: "cannot read the job file " + path, Why: why,
			Fix: "check the path; examples/quickstart.yaml is a job file to start from"}})
	}
	return Parse(source, path, overrides...)
}

// Parse is Load for a file already read. It does not look at any other file. Path names the file in errors and
// anchors the relative paths in it.
func Parse(source []byte, path string, overrides ...string) (*Job, error) {
	d := &decoder{file: path, origin: map[*yaml.Node]string{}, marks: map[string]mark{}, bad: map[string]bool{}}
	root := d.document(source)
	if root == nil {
		return nil, list(d.problems)
	}
	for _, o := range overrides {
		d.override(root, o)
	}
	j := &Job{Spec: defaults(), Path: path, Source: source, Overrides: overrides, marks: d.marks}
	d.value("", root, reflect.ValueOf(&j.Spec).Elem())
	j.derive()
	(&checker{Job: j, d: d}).run()
	if err := list(d.problems); err != nil {
		return nil, err
	}
	return j, nil
}

// Given reports whether the file or an override gives the key, a path such as training.max_steps.
func (j *Job) Given(path string) bool { _, ok := j.marks[path]; return ok }

// Problem is an error at the place of a key, for a check that this package cannot make. A key that the file does not
// give has the place of the nearest section above it.
func (j *Job) Problem(path, code, what, why, fix string) *Error {
	m := j.mark(path)
	return &Error{Code: code, File: m.file, Line: m.line, Column: m.column, What: what, Why: why, Fix: fix}
}

func (j *Job) mark(path string) mark {
	for {
		if m, ok := j.marks[path]; ok {
			return m
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
}

// Rounds is the number of rounds of the run; 0 as long as the length of the run is given in epochs.
func (j *Job) Rounds() int { return j.Training.MaxSteps / max(1, j.Strategy.SyncSteps) }

// InSteps is a job whose length is given in epochs, with its length in inner steps: as many as the epochs have, rounded
// up to whole rounds. Its overrides say so, and whoever reads the file with them gets this job.
func (j *Job) InSteps(stepsPerEpoch float64) (*Job, error) {
	steps := max(1, int(math.Ceil(j.Training.NumEpochs*stepsPerEpoch)))
	s := j.Strategy
	round := s.SyncSteps
	switch {
	case round > 0:
	case s.OuterOptimizer.Gradients():
		round = 1
	default:
		round = min(steps, recipes[s.Method].length())
	}
	steps = (steps + round - 1) / round * round
	overrides := append(slices.Clone(j.Overrides), "training.num_epochs=null", fmt.Sprintf("training.max_steps=%d", steps))
	return Parse(j.Source, j.Path, overrides...)
}

// WorkerBatch is the number of sequences of one inner step of one worker.
func (j *Job) WorkerBatch() int { return j.Training.GlobalBatchSize / j.Strategy.Workers.Target }

// Dir is the folder that relative paths of the file start from.
func (j *Job) Dir() string { return filepath.Dir(j.Path) }

// MicroBatch is how many sequences of its batch a worker computes at a time; 0: all of them.
func (j *Job) MicroBatch() int {
	m, each := int(j.Training.MicroBatchSize), j.WorkerBatch()
	if g := int(j.Training.GradientAccumulation); m == 0 && g > 0 {
		m = each / g
	}
	if m == each {
		return 0
	}
	return m
}

// Canonical is the canonical encoding of what the job asks for: a map from keys to values, zero values left out. It
// holds no path, no output folder and nothing else that is about one machine, so the same job has the same bytes
// everywhere; the data and the tokenizer it stands for are bound by their own digests.
func (j *Job) Canonical() []byte { return canon.MustMarshal(canonical(reflect.ValueOf(j.Spec))) }

func canonical(v reflect.Value) any {
	switch t := v.Interface().(type) {
	case Tokenizer:
		return map[string]any{"kind": string(t.Kind), "vocab_size": t.VocabSize}
	case map[string]any:
		return t
	}
	switch v.Kind() {
	case reflect.Pointer:
		return canonical(v.Elem())
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = canonical(v.Index(i))
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range keysOf(v.Type()) {
			if x := v.Field(f.index); !f.local && !x.IsZero() {
				out[f.name] = canonical(x)
			}
		}
		return out
	}
	return v.Interface()
}
