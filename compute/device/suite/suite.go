// Package suite compares what a device computes with the portable kernels, operator by operator, on numbers at which
// devices go wrong: a device that passes may compute for others, and the case that fails says why one may not. It does
// not decide who may compute.
package suite

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Result is what came of one kind of operator.
type Result struct {
	Kind     string `json:"kind"`
	Cases    int    `json:"cases"`
	Elements int    `json:"elements"` // compared
	Differ   int    `json:"differ"`
	Failed   string `json:"failed,omitempty"` // the first element that differs
}

// Report is the results of a suite.
type Report struct {
	Results []Result `json:"results"`
	OnHost  []string `json:"on_host"` // kinds without a kernel, which the processor computes
}

// Differ is the number of elements that differ.
func (r Report) Differ() (sum int) {
	for _, x := range r.Results {
		sum += x.Differ
	}
	return sum
}

// Elements is the number of elements that were compared.
func (r Report) Elements() (sum int) {
	for _, x := range r.Results {
		sum += x.Elements
	}
	return sum
}

// Failed is the first case that failed, "" if there is none.
func (r Report) Failed() string {
	for _, x := range r.Results {
		if x.Failed != "" {
			return x.Failed
		}
	}
	return ""
}

// Run compares a device in all versions of the numerics that it computes. elements is how many numbers the elementwise
// operators get of each sort; the others get fewer. An error is one of the device.
func Run(d device.Device, elements int) (Report, error) {
	var s suite
	for _, v := range d.Numerics() {
		for _, c := range cases(v, elements) {
			if err := s.run(d, c); err != nil {
				return s.Report, fmt.Errorf("%s in version %d of the numerics: %w", c.name, v, err)
			}
		}
	}
	return s.Report, nil
}

// Digest is that of all that the outcome of Run follows from on one device, but for the program that runs it.
func Digest(elements int) canon.Digest {
	parts := [][]byte{binary.BigEndian.AppendUint64(nil, seed)}
	for v := kernel.Version1; v <= kernel.Newest; v++ {
		parts = append(parts, []byte(device.Source(v)))
		for _, c := range cases(v, elements) {
			d := c.program.Digest()
			parts = append(parts, []byte(c.name), d[:])
		}
	}
	for _, s := range sorts {
		parts = append(parts, []byte(s.name))
	}
	return canon.Sum("starling/device/suite/2", parts...)
}

// suite collects results.
type suite struct {
	Report
	at map[string]int // of results, by kind
}

// run runs a program on each sort of numbers.
func (s *suite) run(d device.Device, c testcase) error {
	r, err := device.Compile(d, c.program, nil, 1)
	if err != nil {
		return err
	}
	defer r.Free()
	for _, k := range r.OnHost() {
		s.OnHost = append(s.OnHost, k.String())
	}
	for _, o := range sorts {
		in := c.inputs(o)
		for name, x := range in {
			if err := r.Put(name, x); err != nil {
				return err
			}
		}
		if err := r.Run(); err != nil {
			return err
		}
		if err := s.compare(r, c, o.name, in); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the outputs with those of the portable kernels.
func (s *suite) compare(r *device.Runner, c testcase, sort string, in map[string]*tensor.Tensor) error {
	values := make([]*tensor.Tensor, len(c.program.Ops))
	for i := range c.program.Ops {
		op := &c.program.Ops[i]
		if values[i] = in[op.Name]; op.Kind == program.Input {
			continue
		}
		var args []*tensor.Tensor
		for _, v := range op.In {
			args = append(args, values[v])
		}
		var err error
		if values[i], err = cpu.Eval(c.program.Numerics, op, args); err != nil {
			return err
		}
	}
	for _, o := range c.program.Outputs {
		want := values[o.Value].Clone()
		want.Canonicalize()
		got := tensor.New(want.Shape)
		if err := r.Get(o.Name, got); err != nil {
			return err
		}
		s.add(c.program.Ops[o.Value].Kind.String(), fmt.Sprintf("%s of %s numbers in version %d", o.Name, sort,
			c.program.Numerics), got, want)
	}
	return nil
}

// add adds the comparison of a value.
func (s *suite) add(kind, what string, got, want *tensor.Tensor) {
	at, ok := s.at[kind]
	if !ok {
		if s.at == nil {
			s.at = map[string]int{}
		}
		at = len(s.Results)
		s.at[kind] = at
		s.Results = append(s.Results, Result{Kind: kind})
	}
	r := &s.Results[at]
	r.Cases++
	r.Elements += want.Shape.Elements()
	size := want.Shape.DType.Size()
	if bytes.Equal(got.Bytes(), want.Bytes()) {
		return
	}
	for i := range want.Shape.Elements() {
		g, w := got.Bytes()[i*size:(i+1)*size], want.Bytes()[i*size:(i+1)*size]
		if bytes.Equal(g, w) {
			continue
		}
		if r.Differ++; r.Failed == "" {
			r.Failed = fmt.Sprintf("%s: element %d has the bytes %x, not %x", what, i, g, w)
		}
	}
}

// testcase is a program whose outputs are compared, and the shapes of its inputs.
type testcase struct {
	name    string
	program *program.Program
	swept   bool // numbers at equal distances take the place of ordinary ones
}

// inputs makes the inputs of a sort.
func (c testcase) inputs(s sort) map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for k, i := range c.program.Inputs() {
		x := tensor.New(i.Shape)
		switch {
		case i.Shape.DType != tensor.Float32:
			indices(x, uint64(k))
		case c.swept && k == 0 && s.name == sorts[0].name:
			sweep(x.F32())
		default:
			s.fill(x.F32(), uint64(k))
		}
		in[i.Name] = x
	}
	return in
}

// indices fills integers with small numbers that are not negative.
func indices(x *tensor.Tensor, stream uint64) {
	r := philox.New(seed, stream)
	for i := range x.I32() {
		x.I32()[i] = int32(r.Uint64n(smallest))
	}
}

// smallest is the number of rows of the smallest table that indices point to.
const smallest = 5
