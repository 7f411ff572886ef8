package device

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Runner runs one program on a device again and again. Inputs stay there from run to run. It is for one goroutine at a
// time.
type Runner struct {
	plan    *lower.Plan
	layout  layout
	code    Code
	memory  Buffer
	table   Buffer
	steps   []boundStep
	after   []Launch   // once a run is over: what it carries
	host    *cpu.Steps // computes the steps without a kernel
	inputs  map[string]tensor.Shape
	outputs map[string]tensor.Shape
}

// Compile plans a program for a device, and takes its memory there. It checks the rules of program.Check, but no
// limits. The error wraps ErrNumerics if the device does not compute its version. Outputs that are carried become the
// inputs of the same names for the next run. Steps without a kernel run on up to the given number of threads.
func Compile(d Device, p *program.Program, carried []string, threads int) (*Runner, error) {
	if err := p.Check(program.Unlimited); err != nil {
		return nil, err
	}
	if !slices.Contains(d.Numerics(), p.Numerics) {
		return nil, fmt.Errorf("%w: the program asks for version %d of the numerics, and the device computes %v",
			ErrNumerics, p.Numerics, d.Numerics())
	}
	plan := lower.Program(lower.Fresh(p))
	r := &Runner{plan: plan, host: cpu.StepsOf(plan, threads), inputs: plan.Program.InputShapes(),
		outputs: map[string]tensor.Shape{}}
	for _, o := range plan.Program.Outputs {
		r.outputs[o.Name] = plan.Program.Ops[o.Value].Out
	}
	b := bindAll(plan, carried)
	r.layout, r.steps, r.after = b.layout, b.steps, b.after
	var err error
	if r.code, err = d.Build(beginning(p.Numerics) + b.printer.text.String()); err != nil {
		return nil, err
	}
	if r.table, err = d.Allocate(max(8*len(b.table), 8)); err == nil {
		err = r.table.Write(0, wordsOf(b.table))
	}
	if err == nil {
		r.memory, err = d.Allocate(max(b.layout.bytes, tensor.Align))
	}
	for s, store := range plan.Stores {
		if err == nil && store.Class == lower.InProgram {
			err = r.memory.Write(int(b.layout.places[s]), plan.Program.Ops[store.Index].Data)
		}
	}
	if err != nil {
		r.Free()
		return nil, err
	}
	return r, nil
}

// Need is the size in bytes of the buffer that Compile allocates for a program, the largest.
func Need(p *program.Program, carried []string) (bytes int64, err error) {
	if err := p.Check(program.Unlimited); err != nil {
		return 0, err
	}
	b := binding{printer: printer{names: map[string]string{}}}
	b.place(lower.Program(lower.Fresh(p)), carried)
	return int64(max(b.layout.bytes, tensor.Align)), nil
}

// wordsOf is a table in the memory of a device, which is little-endian like those of all ports.
func wordsOf(table []int64) []byte {
	t := tensor.New(tensor.Make(tensor.Int64, max(len(table), 1)))
	copy(t.I64(), table)
	return t.Bytes()
}

// Free gives back what the runner has on the device.
func (r *Runner) Free() {
	r.code.Free()
	for _, b := range []Buffer{r.table, r.memory} {
		if b != nil {
			b.Free()
		}
	}
}

// Put sets an input.
func (r *Runner) Put(name string, t *tensor.Tensor) error {
	want, ok := r.inputs[name]
	if !ok || !t.Shape.Equal(want) {
		return fmt.Errorf("%w: input %q is %s, want %s", program.ErrInput, name, t.Shape, want)
	}
	if want.DType == tensor.Bool && slices.ContainsFunc(t.Bytes(), func(b byte) bool { return b > 1 }) {
		return fmt.Errorf("%w: input %q holds a boolean other than 0 and 1", program.ErrInput, name)
	}
	if s, ok := r.layout.inputs[name]; ok { // nothing reads the others
		return r.memory.Write(int(r.layout.places[s]), t.Bytes())
	}
	return nil
}

// Get reads an output of the last run, or an input that was carried.
func (r *Runner) Get(name string, into *tensor.Tensor) error {
	s, ok := r.layout.outputs[name]
	if want := r.outputs[name]; !ok || !into.Shape.Equal(want) {
		return fmt.Errorf("%w: no tensor of %s for output %q", program.ErrInput, want, name)
	}
	if err := r.memory.Read(int(r.layout.places[s]), into.Bytes()); err != nil {
		return err
	}
	into.Canonicalize()
	return nil
}

// Run computes the outputs from the inputs, all of which have been put. Errors wrap program.ErrIndex, or are those of
// the device.
func (r *Runner) Run() error {
	for i := range r.steps {
		if err := r.step(i); err != nil {
			return err
		}
	}
	return r.start(r.after)
}

func (r *Runner) start(list []Launch) error {
	for _, l := range list {
		if err := r.code.Start(l, r.memory, r.table); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) step(i int) error {
	st := &r.steps[i]
	if st.launches == nil {
		return r.onHost(i)
	}
	if err := r.checked(st.check); err != nil {
		return err
	}
	return r.start(st.launches)
}

// checked reports an index that is none of a row.
func (r *Runner) checked(c *check) error {
	if c == nil {
		return nil
	}
	flag := tensor.FromI32([]int32{math.MaxInt32})
	if err := r.memory.Write(int(c.flag), flag.Bytes()); err != nil {
		return err
	}
	if err := r.start([]Launch{c.launch}); err != nil {
		return err
	}
	if err := r.memory.Read(int(c.flag), flag.Bytes()); err != nil {
		return err
	}
	at := flag.I32()[0]
	if at == math.MaxInt32 {
		return nil
	}
	index := tensor.New(tensor.Make(c.indices.Type))
	lo, _ := c.indices.Range()
	place := int(r.layout.places[c.indices.Store]) + lo + int(at)*c.indices.Type.Size()
	if err := r.memory.Read(place, index.Bytes()); err != nil {
		return err
	}
	value := int64(0)
	if c.indices.Type == tensor.Int64 {
		value = index.I64()[0]
	} else {
		value = int64(index.I32()[0])
	}
	return program.IndexError(c.op, c.kind, value, c.rows)
}

// onHost computes a step on the processor, on copies of the stores that it reads and writes.
func (r *Runner) onHost(i int) error {
	st, memory := &r.plan.Steps[i], make([][]byte, len(r.plan.Stores))
	place := func(s int) int { return int(r.layout.places[s]) }
	for _, s := range st.Reads() {
		memory[s] = tensor.Alloc(r.plan.Stores[s].Bytes)
		if err := r.memory.Read(place(s), memory[s]); err != nil {
			return err
		}
	}
	for _, s := range st.Writes() {
		if memory[s] == nil {
			memory[s] = tensor.Alloc(r.plan.Stores[s].Bytes)
		}
	}
	if err := r.host.Run(i, memory); err != nil {
		return err
	}
	for _, s := range st.Writes() {
		if err := r.memory.Write(place(s), memory[s]); err != nil {
			return err
		}
	}
	return nil
}

// OnHost lists the kinds of the steps that have no kernel, each once.
func (r *Runner) OnHost() (kinds []program.Kind) {
	for i, st := range r.steps {
		if k := r.plan.Steps[i].Kind; st.launches == nil && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
