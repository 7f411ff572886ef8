package model

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// stateDigest is over all trained tensors and their moments, in canonical order, and the loss.
func stateDigest(task Task, out state) canon.Digest {
	var parts [][]byte
	add := func(name string) {
		root := out[name].Root()
		parts = append(parts, root[:])
	}
	for _, prefix := range []string{"p/", "m/", "v/"} {
		for _, n := range task.Trained {
			add(prefix + n.Name)
		}
	}
	add("loss")
	return canon.Sum("starling/test/state", parts...)
}

var long = flag.Bool("long", false, "follow the golden runs to the last of their steps")

// goldenSteps after which a run is pinned; testing.Short stops after the second, the last needs -long.
var goldenSteps = []int{1, 20, 100, 1000}

// goldenRuns are small runs of every family, from initial weights on four batches in turn. Nothing in them depends on
// how a port fuses or rounds floating-point operations of Go.
func goldenRuns(t *testing.T) (names []string, runs map[string]trial) {
	runs = map[string]trial{}
	for name, c := range tiny(t) {
		task, err := Language(c, testBatch, testLength)
		runs[name] = trial{task: mustTask(t, task, err), batch: state{}}
	}
	for name, c := range adaptedModels(t) {
		if !strings.HasSuffix(name, "-all") {
			task, err := Language(c, testBatch, testLength)
			runs[name] = trial{task: mustTask(t, task, err), batch: state{}}
		}
	}
	for name, tr := range networkTrials(t) {
		if strings.HasSuffix(name, "-dropout") || name == "gcn" {
			runs[name] = tr
		}
	}
	for name := range runs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, runs
}

// goldenBatch is one of the batches of a run; networks see one batch with changing labels.
func goldenBatch(task Task, in state, step int) {
	for _, n := range task.Batch {
		switch n.Name {
		case "tokens":
			ids := someIDs(uint64(step%4), 11, n.Shape.Elements())
			in["tokens"] = tensor.FromI32(ids.I32(), n.Shape.Dims...)
		case "y":
			in["y"] = someIDs(uint64(step%4), 3, n.Shape.Elements())
		}
	}
}

func goldenRun(t *testing.T, name string, tr trial, steps []int) (lines []string) {
	o := AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	p, err := tr.task.TrainStep(o)
	e := mustCompile(t, p, err)
	in := taskInputs(tr.task, Init(append(slices.Clone(tr.task.Frozen), tr.task.Trained...), 1), tr.batch, o, 0)
	power1, power2 := 1.0, 1.0
	in["lr"] = tensor.Scalar(0.003)
	for step := 1; step <= steps[len(steps)-1]; step++ {
		goldenBatch(tr.task, in, step)
		power1, power2 = float64(power1*o.Beta1), float64(power2*o.Beta2)
		in["c1"], in["c2"] = tensor.Scalar(float32(1/(1-power1))), tensor.Scalar(float32(1/(1-power2)))
		out := mustRun(t, e, in)
		if slices.Contains(steps, step) {
			lines = append(lines, fmt.Sprintf("%s step %d %s\n", name, step, stateDigest(tr.task, out)))
		}
		carry(tr.task, in, out)
	}
	return lines
}

// TestStateDigests pins what training gives, on every path of kernels. A changed digest with unchanged programs is a
// change of kernel.Version; rewrite the file only if that is meant.
func TestStateDigests(t *testing.T) {
	steps := goldenSteps
	if testing.Short() {
		steps = steps[:2]
	} else if !*long && !*rewrite {
		steps = steps[:3]
	}
	names, runs := goldenRuns(t)
	digests := func(path string) (lines []string) {
		if err := kernel.Select(path); err != nil {
			t.Fatal(err)
		}
		defer kernel.Select("")
		for _, name := range names {
			lines = append(lines, goldenRun(t, name, runs[name], steps)...)
		}
		return lines
	}
	got := digests("portable")
	for _, path := range kernel.Paths()[1:] {
		if other := digests(path.String()); !slices.Equal(other, got) {
			t.Errorf("%s gives\n%s, portable\n%s", path, strings.Join(other, ""), strings.Join(got, ""))
		}
	}
	file := filepath.Join("testdata", "states.golden")
	if *rewrite {
		if testing.Short() {
			t.Fatal("-rewrite needs all steps: leave out -short")
		}
		if err := os.WriteFile(file, []byte(strings.Join(got, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range got {
		if !strings.Contains(string(want), line) {
			t.Errorf("not in %s: %s", file, line)
		}
	}
}
