// Package job reads job files: strict YAML with the keys of `apiVersion: starling/v1, kind: TrainingJob`.
//
// Everything wrong with a file is found at once, each with its line and column, the reason and the fix; nothing is
// ignored silently. The package is the only place that knows a default. It does not know models, tokenizers or
// prices: packages that check those report with Job.Problem, so that the user sees the line all the same.
package job

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/client/job/check"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/job/strict"
)

// Job is a job file with its defaults filled in.
type Job struct {
	spec.Spec
	Path      string         // of the job file, as given
	Source    []byte         // the file as read; Parse(Source, Path, Overrides...) gives the same job
	Overrides []string       // key=value, applied in order
	Notes     []problem.Note // accepted settings that have no effect on this run
	Numerics  uint32         // version of the numerics that the network of the job asks for; 0: that of a new network

	marks strict.Marks
}

// Load reads a job file, applies overrides of the form training.learning_rate=1e-4 (the value is YAML; elements of
// lists are numbered from 0: datasets.0.path=...), and checks that the files it names exist. The error is an
// *problem.ErrorList.
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
	source, err := open(path)
	if err != nil {
		return nil, err
	}
	return Parse(source, path, overrides...)
}

// open reads a job file. The error is a *problem.ErrorList.
func open(path string) ([]byte, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		why := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			why = "there is no such file"
		}
		return nil, problem.Join([]*problem.Error{{Code: problem.FileNotFound, File: path,
			What: "cannot read the job file " + path, Why: why,
			Fix: "check the path; examples/quickstart.yaml is a job file to start from"}})
	}
	return source, nil
}

// Parse is Load for a file already read. It does not look at any other file. Path names the file in errors and
// anchors the relative paths in it.
//
// A FederatedJob is refused: Federated is Parse for it.
func Parse(source []byte, path string, overrides ...string) (*Job, error) {
	return ofKind(source, path, spec.TrainingJob, overrides)
}

// ofKind is Parse for a kind of job.
func ofKind(source []byte, path, kind string, overrides []string) (*Job, error) {
	j, d, ok := decode(source, path, overrides)
	if ok && j.Kind != kind && !d.Bad("kind") {
		return nil, j.otherKind()
	}
	if ok && j.several(d) {
		return nil, j.many()
	}
	if ok {
		j.Derive(path, d.Given)
		check.Keys(j.Spec, d)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	j.Notes = d.Notes()
	return j, nil
}

// decode reads the keys of a file; ok tells whether it is YAML of a job file at all.
func decode(source []byte, path string, overrides []string) (j *Job, d *strict.Decoder, ok bool) {
	d = strict.New(path, spec.Aliases)
	d.Variants = variants
	j = &Job{Spec: spec.Fixed(), Path: path, Source: source, Overrides: overrides}
	ok = d.Decode(source, overrides, &j.Spec)
	j.marks = d.Marks()
	return j, d, ok
}

// Given reports whether the file or an override gives the key, a path such as training.max_steps.
func (j *Job) Given(path string) bool { _, ok := j.marks[path]; return ok }

// Problem is an error at the place of a key, for a check that this package cannot make. A key that the file does not
// give has the place of the nearest section above it.
func (j *Job) Problem(path, code, what, why, fix string) *problem.Error {
	m := j.marks.Near(path)
	return &problem.Error{Code: code, File: m.File, Line: m.Line, Column: m.Column, What: what, Why: why, Fix: fix}
}

// Refuse is Problem as a *problem.ErrorList of its own, for a reason that is an error.
func (j *Job) Refuse(path, code, what string, why error, fix string) error {
	return &problem.ErrorList{Errors: []*problem.Error{j.Problem(path, code, what, why.Error(), fix)}}
}

// InSteps is a job whose length is given in epochs, with its length in inner steps: as many as the epochs have, rounded
// up to whole rounds. Reading the file with its overrides gives this job again.
func (j *Job) InSteps(stepsPerEpoch float64) (*Job, error) {
	steps := max(1, int(math.Ceil(j.Training.NumEpochs*stepsPerEpoch)))
	s := j.Strategy
	round := s.SyncSteps
	switch {
	case round > 0:
	case s.OuterOptimizer.Gradients():
		round = 1
	default:
		round = min(steps, s.RoundLength())
	}
	steps = (steps + round - 1) / round * round
	overrides := append(slices.Clone(j.Overrides), "training.num_epochs=null", fmt.Sprintf("training.max_steps=%d", steps))
	return Parse(j.Source, j.Path, overrides...)
}

// Dir is the folder that relative paths of the file start from.
func (j *Job) Dir() string { return filepath.Dir(j.Path) }
