package model

import (
	"embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model/architecture"
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

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "follow the golden runs to the last of their steps")

// goldenSteps after which a run is pinned; those after the second need -long or -rewrite.
var goldenSteps = []int{1, 20, 100, 1000}

// goldenRuns are small runs of every family, from initial weights on four batches in turn. Nothing in them depends on
// how a port fuses or rounds floating-point operations of Go.
func goldenRuns(t *testing.T) (names []string, runs map[string]example) {
	runs = map[string]example{}
	for name, c := range tiny(t) {
		task, err := Language(c, testBatch, testLength)
		runs[name] = example{task: mustTask(t, task, err), batch: state{}}
	}
	for name, c := range adaptedModels(t) {
		if !strings.HasSuffix(name, "-all") {
			task, err := Language(c, testBatch, testLength)
			runs[name] = example{task: mustTask(t, task, err), batch: state{}}
		}
	}
	for name, c := range preferenceModels(t) {
		_, b := preferences(c, testBatch)
		task, err := Preference(c, b, testBeta)
		runs[name+"-preference"] = example{task: mustTask(t, task, err), batch: state{}}
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
			below := 11
			if len(task.Metrics) > 0 { // half of the tokens of pairs are silent
				below = 22
			}
			ids := someIDs(uint64(step%4), below, n.Shape.Elements())
			in["tokens"] = tensor.FromI32(ids.I32(), n.Shape.Dims...)
		}
	}
}

func goldenRun(t *testing.T, numerics uint32, tr example, steps []int) (lines []string) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	p, err := tr.task.TrainStep(o)
	if err != nil {
		t.Fatal(err)
	}
	e := mustCompile(t, p.In(numerics), nil)
	in := taskInputs(tr.task, architecture.Init(append(slices.Clone(tr.task.Frozen), tr.task.Trained...), 1), tr.batch, o,
		0)
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

// TestStateDigests pins what training gives, on every path of kernels: to step 100 on all, and to the last on all but
// the portable one, which is slow: there GPT-2 and LLaMA stand for all. The CI runs it on other ports too. A changed
// digest with unchanged programs is another version of the numerics; rewrite the files, one a model, only if that is
// meant.
func TestStateDigests(t *testing.T) {
	steps := goldenSteps
	if !*long && !*rewrite {
		steps = steps[:2]
	}
	names, runs := goldenRuns(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			checkStates(t, name+".golden", kernel.Version1, runs[name], steps)
			if *long || *rewrite || name == "gpt2" || name == "llama" {
				checkStates(t, name+".2.golden", kernel.Version2, runs[name], steps)
			}
		})
	}
}

// paths are those whose kernels of float32 differ: NEON has those of Portable.
func paths() []kernel.Path {
	return slices.DeleteFunc(kernel.Paths(), func(p kernel.Path) bool { return p == kernel.NEON })
}

// checkStates compares the states of a training in a version of the numerics, on every path, with those of a file.
func checkStates(t *testing.T, name string, numerics uint32, run example, steps []int) {
	file := filepath.Join("testdata", "states", name)
	want := ""
	for _, path := range paths() { // portable comes first
		if err := kernel.Select(path.String()); err != nil {
			t.Fatal(err)
		}
		on := steps
		if plain := strings.HasPrefix(name, "gpt2.") || strings.HasPrefix(name, "llama."); path == kernel.Portable &&
			!plain && !*rewrite && len(paths()) > 1 {
			on = steps[:min(len(steps), 3)]
		}
		got := strings.Join(goldenRun(t, numerics, run, on), "")
		kernel.Select("")
		if want == "" {
			want = golden(t, file, got)
		}
		if !strings.HasPrefix(want, got) {
			t.Errorf("%s gives\n%s%s has\n%s", path, got, file, want)
		}
	}
}

// testdata is the golden files as they were when the test was built: the result of a test that opens files is not
// cached between clones.
//
//go:embed testdata
var testdata embed.FS

// golden returns the content of a file, which is written first if -rewrite asks for it.
func golden(t *testing.T, file, content string) string {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return content
	}
	text, err := testdata.ReadFile(filepath.ToSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStateDigestsInBlocks pins, on every path of kernels, what training with moments in blocks of 8 bits gives.
func TestStateDigestsInBlocks(t *testing.T) {
	for name, o := range map[string]optimizer.Optimizer{
		"adamw": optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1,
			Storage: optimizer.Blocks},
		"lion": optimizer.Lion{Beta1: 0.9, Beta2: 0.99, Common: optimizer.Common{Storage: optimizer.Blocks}},
	} {
		want := ""
		for _, path := range paths() {
			if err := kernel.Select(path.String()); err != nil {
				t.Fatal(err)
			}
			got := runInBlocks(t, o)
			kernel.Select("")
			if want == "" {
				want = golden(t, filepath.Join("testdata", "states", "blocks-"+name+".golden"), got)
			}
			if want != got {
				t.Errorf("%s with %s gives\n%swant\n%s", name, path, got, want)
			}
		}
	}
}

// runInBlocks is the state of a GPT-2 after 1 and 20 steps of an optimizer.
func runInBlocks(t *testing.T, o optimizer.Optimizer) (lines string) {
	c := tiny(t)["gpt2"]
	task, err := Language(c, testBatch, testLength)
	task = mustTask(t, task, err)
	p, err := task.TrainStep(o)
	e, in := mustCompile(t, p, err), state{}
	for n, x := range c.Init(1) {
		in["p/"+n] = x
	}
	for _, input := range p.Inputs() {
		if in[input.Name] == nil {
			in[input.Name] = tensor.New(input.Shape)
		}
	}
	in["lr"], in["c1"], in["c2"] = tensor.Scalar(0.003), tensor.Scalar(1), tensor.Scalar(1)
	for step := 1; step <= 20; step++ {
		goldenBatch(task, in, step)
		out := mustRun(t, e, in)
		var parts [][]byte
		for _, o := range p.Outputs {
			root := out[o.Name].Root()
			parts = append(parts, root[:])
			if in[o.Name] != nil {
				in[o.Name] = out[o.Name]
			}
		}
		if step == 1 || step == 20 {
			lines += fmt.Sprintf("step %d %s\n", step, canon.Sum("starling/test/state", parts...))
		}
	}
	return lines
}
