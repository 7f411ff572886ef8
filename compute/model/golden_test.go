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
	"github.com/starling-network/starling/compute/optimizer"
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

// goldenSteps after which a run is pinned; those after the second need -long or -rewrite.
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
	for name := range runs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, runs
}

// goldenBatch is one of the batches of a run.
func goldenBatch(task Task, in state, step int) {
	for _, n := range task.Batch {
		switch n.Name {
		case "tokens":
			ids := someIDs(uint64(step%4), 11, n.Shape.Elements())
			in["tokens"] = tensor.FromI32(ids.I32(), n.Shape.Dims...)
		}
	}
}

func goldenRun(t *testing.T, name string, tr trial, steps []int) (lines []string) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
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
			lines = append(lines, fmt.Sprintf("step %d %s\n", step, stateDigest(tr.task, out)))
		}
		carry(tr.task, in, out)
	}
	return lines
}

// TestStateDigests pins what training gives, on every path of kernels; the CI runs it on other ports too. A changed
// digest with unchanged programs is a change of kernel.Version; rewrite the files, one a model, only if that is meant.
func TestStateDigests(t *testing.T) {
	steps := goldenSteps
	if !*long && !*rewrite {
		steps = steps[:2]
	}
	names, runs := goldenRuns(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "states", name+".golden")
			want := ""
			for _, path := range kernel.Paths() { // portable comes first
				if err := kernel.Select(path.String()); err != nil {
					t.Fatal(err)
				}
				got := strings.Join(goldenRun(t, name, runs[name], steps), "")
				kernel.Select("")
				if want == "" {
					want = golden(t, file, got)
				}
				if !strings.HasPrefix(want, got) {
					t.Errorf("%s gives\n%s%s has\n%s", path, got, file, want)
				}
			}
		})
	}
}

// golden returns the content of a file, which is written first if -rewrite asks for it.
func golden(t *testing.T, file, content string) string {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
