// Package answer is what starling-device does: it answers the questions of package accelerator from the OpenCL drivers
// of this machine. It is linked into no other program.
package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/boxed"
	"github.com/starling-network/starling/node/opencl"
)

// All answers questions until there are no more. memory is shared with the party that asks.
func All(questions io.Reader, answers io.Writer, memory *os.File) error {
	s := session{memory: memory}
	for {
		body, err := boxed.ReadFrame(questions, accelerator.MaxQuestion)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var q accelerator.Question
		if err := json.Unmarshal(body, &q); err != nil {
			return fmt.Errorf("a question: %w", err)
		}
		a, err := s.answer(q)
		if err != nil {
			a = failed(err)
		}
		if body, err = json.Marshal(a); err != nil {
			return err
		}
		if err := boxed.WriteFrame(answers, body, accelerator.MaxAnswer); err != nil {
			return err
		}
	}
}

// refusal is an error with a code of package accelerator.
type refusal struct{ code, why string }

func (r *refusal) Error() string { return r.why }

// failed is the answer that says that something failed.
func failed(err error) accelerator.Answer {
	a := accelerator.Answer{Kind: accelerator.Failed, Code: accelerator.CodeFailed, Why: err.Error()}
	if r, ok := errors.AsType[*refusal](err); ok {
		a.Code = r.code
	} else if errors.Is(err, opencl.ErrNoDriver) {
		a.Code = accelerator.CodeNone
	}
	return a
}

// session is kept between questions.
type session struct {
	memory *os.File
	runner *device.Runner // nil: none was opened
	layout accelerator.Layout

	suite    *suite.Suite // nil: none was asked for
	compared [2]int       // by suite: the device, and how many elements
}

func (s *session) answer(q accelerator.Question) (accelerator.Answer, error) {
	a := accelerator.Answer{Kind: q.Kind}
	if q.Version != accelerator.Protocol {
		return a, fmt.Errorf("version %d of the protocol, this program speaks %d", q.Version, accelerator.Protocol)
	}
	switch q.Kind {
	case accelerator.Put, accelerator.Step, accelerator.Get:
		return a, s.run(q)
	}
	all, err := opencl.Devices()
	if err != nil {
		return a, err
	}
	switch q.Kind {
	case accelerator.Devices:
		a.Devices = []device.Capabilities{}
		for _, d := range all {
			a.Devices = append(a.Devices, d.Capabilities)
		}
		return a, nil
	case accelerator.Compare:
		err := s.compare(all, q, &a)
		return a, err
	case accelerator.Compile:
		return a, s.open(all, q)
	}
	return a, fmt.Errorf("there is no question %q", q.Kind)
}

// opened opens a device that lacks nothing.
func opened(all []*opencl.Device, at int) (*opencl.Device, error) {
	if at < 0 || at >= len(all) {
		return nil, &refusal{accelerator.CodeNone, fmt.Sprintf("device %d of %d", at, len(all))}
	}
	if missing := all[at].Missing(); missing != "" {
		return nil, &refusal{accelerator.CodeInexact, fmt.Sprintf("%s has no %s", all[at].Name, missing)}
	}
	return all[at], all[at].Open()
}

// compare runs a piece of a case of the suite.
func (s *session) compare(all []*opencl.Device, q accelerator.Question, a *accelerator.Answer) error {
	if of := [2]int{q.Device, q.Elements}; s.suite == nil || s.compared != of {
		d, err := opened(all, q.Device)
		if err != nil {
			return err
		}
		if s.suite != nil {
			s.suite.Close()
		}
		s.suite, s.compared = suite.New(d, q.Elements), of
	}
	if a.Cases = s.suite.Cases(); q.Case < 0 || q.Case >= a.Cases {
		return fmt.Errorf("case %d of %d", q.Case, a.Cases)
	}
	r, err := s.suite.Run(q.Case, q.Piece)
	a.Report = &r
	return err
}

// open compiles a program, in the place of the one before.
func (s *session) open(all []*opencl.Device, q accelerator.Question) error {
	var p program.Program
	if err := canon.Unmarshal(q.Program, &p); err != nil {
		return err
	}
	d, err := opened(all, q.Device)
	if err != nil {
		return err
	}
	if s.runner != nil {
		s.runner.Free()
		s.runner = nil
	}
	if s.runner, err = device.Compile(d, &p, q.Carried, runtime.NumCPU()); err != nil {
		return err
	}
	s.layout = accelerator.LayoutOf(&p)
	return nil
}

var errNoProgram = errors.New("no program was opened")

// run sets inputs, takes a step if one is asked for, and reads outputs.
func (s *session) run(q accelerator.Question) error {
	if s.runner == nil {
		return errNoProgram
	}
	for _, name := range q.Put {
		at, ok := s.layout.In[name]
		if !ok {
			return fmt.Errorf("the program has no input %q", name)
		}
		t := tensor.New(at.Shape)
		if err := at.Read(s.memory, t); err != nil {
			return err
		}
		if err := s.runner.Put(name, t); err != nil {
			return err
		}
	}
	if q.Kind == accelerator.Step {
		for range max(q.Times, 1) {
			if err := s.runner.Run(); err != nil {
				return err
			}
		}
	}
	for _, name := range q.Get {
		at, ok := s.layout.Out[name]
		if !ok {
			return fmt.Errorf("the program has no output %q", name)
		}
		t := tensor.New(at.Shape)
		if err := s.runner.Get(name, t); err != nil {
			return err
		}
		if err := at.Write(s.memory, t); err != nil {
			return err
		}
	}
	return nil
}
