// Package suite compares what a device computes with the portable kernels, operator by operator, on numbers at which
// devices go wrong: a device that passes may compute for others, and the case that fails says why one may not. It does
// not decide who may compute.
package suite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/kernel"
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

// Report is the results of a suite, or of a part of it.
type Report struct {
	Results []Result `json:"results"`
	OnHost  []string `json:"on_host"` // kinds without a kernel, which the processor computes
}

// Differ is the number of elements that differ.
func (r *Report) Differ() (sum int) {
	for _, x := range r.Results {
		sum += x.Differ
	}
	return sum
}

// Elements is the number of elements that were compared.
func (r *Report) Elements() (sum int) {
	for _, x := range r.Results {
		sum += x.Elements
	}
	return sum
}

// Failed is the first case that failed, "" if there is none.
func (r *Report) Failed() string {
	for _, x := range r.Results {
		if x.Failed != "" {
			return x.Failed
		}
	}
	return ""
}

// Add adds the results of another part.
func (r *Report) Add(part Report) {
	for _, x := range part.Results {
		to := r.of(x.Kind)
		to.Cases += x.Cases
		to.Elements += x.Elements
		to.Differ += x.Differ
		if to.Failed == "" {
			to.Failed = x.Failed
		}
	}
	for _, k := range part.OnHost {
		if !slices.Contains(r.OnHost, k) {
			r.OnHost = append(r.OnHost, k)
		}
	}
}

// of is the result of a kind.
func (r *Report) of(kind string) *Result {
	at := slices.IndexFunc(r.Results, func(x Result) bool { return x.Kind == kind })
	if at < 0 {
		at = len(r.Results)
		r.Results = append(r.Results, Result{Kind: kind})
	}
	return &r.Results[at]
}

// Suite compares a device, case by case and piece by piece. A case stays on the device for its next piece.
type Suite struct {
	device device.Device
	cases  []testcase
	at     int            // the case that is on the device
	runner *device.Runner // nil: none is
}

// Piece is the most numbers of each sort that an elementwise operator gets in a piece.
const Piece = 1 << 20

// Pieces is the number of pieces in which elementwise operators get that many numbers of each sort, rounded up.
func Pieces(elements int) int { return (elements + Piece - 1) / Piece }

// New returns a suite for all versions of the numerics that a device computes. elements is how many numbers of each
// sort the elementwise operators get in a piece, Piece at most; the others get fewer.
func New(d device.Device, elements int) *Suite {
	s := &Suite{device: d}
	for _, v := range d.Numerics() {
		s.cases = append(s.cases, cases(v, min(elements, Piece))...)
	}
	return s
}

// Cases is the number of cases.
func (s *Suite) Cases() int { return len(s.cases) }

// Close gives back what is on the device.
func (s *Suite) Close() {
	if s.runner != nil {
		s.runner.Free()
		s.runner = nil
	}
}

// Run compares a case on the numbers of a piece, which no other piece has. An error is one of the device.
func (s *Suite) Run(at, piece int) (Report, error) {
	c := s.cases[at]
	r, err := s.run(at, piece)
	if err != nil {
		err = fmt.Errorf("%s in version %d of the numerics: %w", c.name, c.program.Numerics, err)
	}
	return r, err
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

// run runs the program of a case on each sort of numbers.
func (s *Suite) run(at, piece int) (to Report, err error) {
	c := s.cases[at]
	if s.runner == nil || s.at != at {
		s.Close()
		if s.runner, err = device.Compile(s.device, c.program, nil, 1); err != nil {
			return to, err
		}
		s.at = at
	}
	for _, k := range s.runner.OnHost() {
		to.OnHost = append(to.OnHost, k.String())
	}
	for _, o := range sorts {
		in := c.inputs(o, piece)
		for name, x := range in {
			if err := s.runner.Put(name, x); err != nil {
				return to, err
			}
		}
		if err := s.runner.Run(); err != nil {
			return to, err
		}
		if err := to.compare(s.runner, c, o.name, in); err != nil {
			return to, err
		}
	}
	return to, nil
}

// compare compares the outputs with those of the portable kernels.
func (r *Report) compare(x *device.Runner, c testcase, sort string, in map[string]*tensor.Tensor) error {
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
		if err := x.Get(o.Name, got); err != nil {
			return err
		}
		r.add(c.program.Ops[o.Value].Kind.String(), fmt.Sprintf("%s of %s numbers in version %d", o.Name, sort,
			c.program.Numerics), got, want)
	}
	return nil
}

// add adds the comparison of a value.
func (r *Report) add(kind, what string, got, want *tensor.Tensor) {
	to := r.of(kind)
	to.Cases++
	to.Elements += want.Shape.Elements()
	size := want.Shape.DType.Size()
	if bytes.Equal(got.Bytes(), want.Bytes()) {
		return
	}
	for i := range want.Shape.Elements() {
		g, w := got.Bytes()[i*size:(i+1)*size], want.Bytes()[i*size:(i+1)*size]
		if bytes.Equal(g, w) {
			continue
		}
		if to.Differ++; to.Failed == "" {
			to.Failed = fmt.Sprintf("%s: element %d has the bytes %x, not %x", what, i, g, w)
		}
	}
}

// testcase is a program whose outputs are compared, and the shapes of its inputs.
type testcase struct {
	name    string
	program *program.Program
	swept   bool // numbers at equal distances take the place of ordinary ones
}

// inputs makes the inputs of a sort and a piece.
func (c testcase) inputs(s sort, piece int) map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for k, i := range c.program.Inputs() {
		x := tensor.New(i.Shape)
		switch {
		case i.Shape.DType != tensor.Float32:
			indices(x, piece, uint64(k))
		case c.swept && k == 0 && s.name == sorts[0].name:
			sweep(x.F32(), piece)
		default:
			s.fill(x.F32(), piece, uint64(k))
		}
		in[i.Name] = x
	}
	return in
}

// indices fills integers with small numbers that are not negative.
func indices(x *tensor.Tensor, piece int, stream uint64) {
	r := numbers(piece, stream)
	for i := range x.Shape.Elements() {
		if n := r.Uint64n(smallest); x.Shape.DType == tensor.Int64 {
			x.I64()[i] = int64(n)
		} else {
			x.I32()[i] = int32(n)
		}
	}
}

// smallest is the number of rows of the smallest table that indices point to.
const smallest = 5
