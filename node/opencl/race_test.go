package opencl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"

	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// oclgrind is the driver of Oclgrind (Debian: oclgrind), which interprets kernels and watches their memory.
const oclgrind = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"

// inOclgrind, in the environment of a test, says what it runs there: kernels, or one of the mutants.
const inOclgrind = "STARLING_OCLGRIND"

// raceMutants are wrong kernels, and words of oclgrind about each.
var raceMutants = map[string]struct{ old, new, says string }{
	"no barrier after a tile": {"chain[i][j]);\n\t\t\tbarrier(CLK_LOCAL_MEM_FENCE);", "chain[i][j]);",
		"data race"},
	"no end of the rows": {"if (row < m && column < n)", "if (column < n)", "Invalid write"},
}

// TestKernelsHaveNoRaces runs every kernel on a small shape in oclgrind, which demands that no two work-items touch
// an element of which one writes it without a barrier between, and none leaves its buffer. With -long it sees both in
// kernels that are wrong.
func TestKernelsHaveNoRaces(t *testing.T) {
	if _, err := os.Stat(oclgrind); err != nil {
		t.Skip("no races of kernels are looked for: there is no oclgrind (apt-get install oclgrind)")
	}
	if log := interpreted(t, "kernels"); log != "" {
		t.Errorf("oclgrind says:\n%.4000s", log)
	}
	if !*long {
		return
	}
	for name, m := range raceMutants {
		if log := interpreted(t, name); !strings.Contains(log, m.says) {
			t.Errorf("%s: oclgrind does not say %q:\n%.2000s", name, m.says, log)
		}
	}
}

// interpreted runs TestInOclgrind in a process with the driver of oclgrind, and returns what that reports.
func interpreted(t *testing.T, what string) string {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(filepath.Join(dir, "oclgrind.icd"), []byte(oclgrind+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestInOclgrind$", "-test.v")
	cmd.Env = append(os.Environ(), inOclgrind+"="+what, "OCL_ICD_VENDORS="+dir, "OCLGRIND_LOG="+log,
		"OCLGRIND_DATA_RACES=1", "OCLGRIND_UNIFORM_WRITES=1", "OCLGRIND_CHECK_API=1", "OCLGRIND_NUM_THREADS=1",
		"OCLGRIND_LOCAL_MEM_SIZE=65536",          // it takes that of all kernels of a program together
		"OCLGRIND_BUILD_OPTIONS=-cl-opt-disable") // it knows few of the instructions that optimisers make
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestInOclgrind") {
		t.Fatalf("%s: %v:\n%.4000s", what, err, out)
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// TestInOclgrind is the part of TestKernelsHaveNoRaces in the process with the driver of oclgrind.
func TestInOclgrind(t *testing.T) {
	what := os.Getenv(inOclgrind)
	if what == "" {
		t.Skip("TestKernelsHaveNoRaces starts it")
	}
	list, err := Devices()
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Name, "Oclgrind") {
		t.Fatalf("%v, %v", list, err)
	}
	d := list[0]
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if m, ok := raceMutants[what]; ok {
		b := program.NewBuilder()
		tiles(t, b, 3)
		run(t, mutant{d, m.old, m.new}, finished(t, b))
		return
	}
	w := &watched{d, map[string]bool{}}
	for _, c := range smallShapes(t) {
		checkRun(t, w, c.program, c.in)
	}
	for name, started := range w.started {
		if !started {
			t.Errorf("%s was not run", name)
		}
	}
}

// run runs a program, right or wrong.
func run(t *testing.T, d device.Device, s shape) {
	t.Helper()
	r, err := device.Compile(d, s.program, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	for name, v := range s.in {
		if err := r.Put(name, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
}

// watched is a device that keeps which kernels were started, of all that it compiled.
type watched struct {
	*Device
	started map[string]bool
}

// watchedCode is kernels of such a device.
type watchedCode struct {
	device.Code
	started map[string]bool
}

// nameOf is the name of a kernel without the width of its heads; groups are one.
func nameOf(kernel string) string { return strings.TrimRight(kernel, "_0123456789") }

// Build implements device.Device.
func (w *watched) Build(source string) (device.Code, error) {
	c, err := w.Device.Build(source)
	if err != nil {
		return nil, err
	}
	names, err := kernelsOf(c.(*compiled))
	for _, name := range names {
		if _, known := w.started[nameOf(name)]; !known {
			w.started[nameOf(name)] = false
		}
	}
	return watchedCode{c, w.started}, err
}

// Start implements device.Code.
func (c watchedCode) Start(l device.Launch, memory, table device.Buffer) error {
	c.started[nameOf(l.Kernel)] = true
	return c.Code.Start(l, memory, table)
}

// kernelsOf asks the driver for the names of the kernels of a program.
func kernelsOf(c *compiled) ([]string, error) {
	var info func(p uintptr, what uint32, size uintptr, value *byte, got *uintptr) int32
	find, err := open("libOpenCL.so.1")
	if err != nil {
		return nil, err
	}
	at, err := find("clGetProgramInfo")
	if err != nil {
		return nil, err
	}
	purego.RegisterFunc(&info, at)
	text := make([]byte, 64<<10)
	var got uintptr
	const names = 0x1168 // CL_PROGRAM_KERNEL_NAMES
	if code := info(c.id, names, uintptr(len(text)), &text[0], &got); code != 0 {
		return nil, failed("the names of kernels", code)
	}
	return strings.Split(strings.TrimRight(string(text[:got]), "\x00"), ";"), nil
}

// shape is a program with its inputs.
type shape struct {
	program *program.Program
	in      map[string]*tensor.Tensor
}

// tiles adds a product of some rows and two steps of k.
func tiles(t *testing.T, b *program.Builder, rows int) {
	x, y := b.Input("x", tensor.Make(tensor.Float32, rows, 18)), b.Input("y", tensor.Make(tensor.Float32, 18, 5))
	b.Output("product", programtest.Must(t)(b.Dot(x, []int{1}, nil, y, []int{0}, nil)))
}

// blocks adds products of integers, of several blocks.
func blocks(t *testing.T, b *program.Builder) {
	x := b.Input("rows of blocks", tensor.Make(tensor.Float32, 3, 34))
	y := b.Input("columns of blocks", tensor.Make(tensor.Float32, 34, 2))
	for _, bits := range []int64{8, 15} {
		b.Output(fmt.Sprintf("product of %d bits", bits), programtest.Must(t)(b.Append(program.Operator{
			Kind: program.DotExact, In: []int32{int32(x), int32(y)}, Ints: []int64{1, 0, 1, 0, bits, 32}})))
	}
}

// places adds operators that put, take or add elements by their places.
func places(t *testing.T, b *program.Builder) {
	keep := programtest.Must(t)
	for _, d := range []tensor.DType{tensor.Float32, tensor.Int8, tensor.Int32, tensor.Int64, tensor.Uint8,
		tensor.Uint32} {
		b.Output("iota of "+d.String(), keep(b.Iota(tensor.Make(d, 2, 3, 2), 1)))
	}
	b.Output("random", keep(b.Random(b.Input("key", tensor.Make(tensor.Int64, 3)), 10)))
	x := b.Input("padded", tensor.Make(tensor.Float32, 2, 3))
	for _, d := range []tensor.DType{tensor.Int8, tensor.Float16, tensor.Float32, tensor.Int64} {
		fill := keep(b.Convert(b.Constant(tensor.Scalar(3)), d))
		b.Output("pad of "+d.String(), keep(b.Pad(keep(b.Convert(x, d)), fill, []int{1, 0}, []int{0, 1}, []int{2, 0})))
	}
	b.Output("first", keep(b.Append(program.Operator{Kind: program.FirstMax, Ints: []int64{1},
		In: []int32{int32(b.Input("lists", tensor.Make(tensor.Float32, 4, 5)))}})))
	windows := b.Input("windows", tensor.Make(tensor.Float32, 3, 2, 2, 2))
	b.Output("summed", keep(b.SumWindows(windows, []int{7, 4}, []int{2, 2}, []int{2, 2}, []int{2, 1})))
}

// folds adds reductions of rows and of columns, of every type.
func folds(t *testing.T, b *program.Builder) {
	keep := programtest.Must(t)
	for _, d := range []tensor.DType{tensor.Float32, tensor.Int8, tensor.Int32, tensor.Int64, tensor.Uint8,
		tensor.Uint32} {
		x := keep(b.Convert(b.Input(fmt.Sprintf("folded as %s", d), tensor.Make(tensor.Float32, 3, 17)), d))
		for _, k := range []program.Kind{program.ReduceSum, program.ReduceMax, program.ReduceMin} {
			b.Output(fmt.Sprintf("%s of rows of %s", k, d), keep(b.Reduce(k, x, 1)))
			b.Output(fmt.Sprintf("%s of columns of %s", k, d), keep(b.Reduce(k, x, 0)))
		}
	}
	long := b.Input("long", tensor.Make(tensor.Float32, 4100)) // a piece and more
	b.Output("squares", keep(b.Apply(program.SumSquares, long)))
}

// rows adds what indices of both types address.
func rows(t *testing.T, b *program.Builder) {
	keep := programtest.Must(t)
	for _, d := range []tensor.DType{tensor.Int32, tensor.Int64} {
		in := func(name string, dims ...int) program.Value {
			return b.Input(name+" by "+d.String(), tensor.Make(tensor.Float32, dims...))
		}
		out := func(name string, v program.Value, err error) { b.Output(name+" by "+d.String(), keep(v, err)) }
		at := b.Input("rows by "+d.String(), tensor.Make(d, 4))
		logits, table := in("logits", 4, 21), in("table", 3, 5)
		loss, err := b.Apply(program.CrossEntropy, logits, at)
		out("loss", loss, err)
		slope, err := b.Apply(program.CrossEntropyGrad, logits, at, in("d", 4))
		out("slope", slope, err)
		words, err := b.Apply(program.TakeRows, table, at)
		out("words", words, err)
		bytes, err := b.Apply(program.TakeRows, keep(b.Convert(table, tensor.Int8)), at)
		out("bytes", bytes, err)
		added, err := b.Apply(program.AddRows, table, at, in("updates", 4, 5))
		out("added", added, err)
		both, err := b.Concat(1, table, in("more", 3, 2))
		out("both", both, err)
	}
}

// heads adds attention of two heads that share keys, and its gradients.
func heads(t *testing.T, b *program.Builder) {
	float := func(name string, dims ...int) program.Value {
		return b.Input(name, tensor.Make(tensor.Float32, dims...))
	}
	q, do := float("q", 1, 2, 9, 3), float("do", 1, 2, 9, 3)
	k, v := float("k", 1, 1, 9, 3), float("v", 1, 1, 9, 3)
	lse, delta := float("lse", 1, 2, 9), float("delta", 1, 2, 9)
	for kind, operands := range map[program.Kind][]program.Value{
		program.CausalAttention: {q, k, v}, program.CausalAttentionLSE: {q, k},
		program.CausalAttentionGradQ: {q, k, v, do, lse, delta}, program.CausalAttentionGradK: {q, k, v, do, lse, delta},
		program.CausalAttentionGradV: {q, k, do, lse},
	} {
		b.Output(kind.String(), programtest.Must(t)(b.Attention(kind, 0, 0, operands...)))
	}
}

// finished returns a program with random inputs; those of integers are rows of small tables.
func finished(t *testing.T, b *program.Builder) shape {
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	r, in := rand.New(rand.NewPCG(178, 0)), map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		x := programtest.Tensor(r, i.Shape, false)
		for k := range i.Shape.Elements() {
			switch i.Shape.DType {
			case tensor.Int32:
				x.I32()[k] = int32(r.IntN(3))
			case tensor.Int64:
				x.I64()[k] = int64(r.IntN(3))
			}
		}
		in[i.Name] = x
	}
	return shape{p, in}
}

// smallShapes run every kernel, those with elementary functions in both versions of the numerics, and random programs.
func smallShapes(t *testing.T) (list []shape) {
	for i, v := range []uint32{kernel.Version1, kernel.Version2} {
		b := program.NewBuilder()
		rows(t, b)
		heads(t, b)
		if v == kernel.Version1 {
			tiles(t, b, 66) // two work-groups
			blocks(t, b)
			places(t, b)
			folds(t, b)
		}
		s := finished(t, b)
		p, in := programtest.Random(t, uint64(i), 40)
		list = append(list, shape{s.program.In(v), s.in}, shape{p.In(v), in})
	}
	return list
}
