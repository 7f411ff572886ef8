package pipeline

import (
	"errors"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/stages/boundary"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/role/pipeline"
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "cut in every number of stages, as .ci/run does")

// small is a model with weights that two stages read.
var small = size{family: "gpt2", tied: true, layers: 4, width: 16, length: 10, sequences: 4, microbatch: 2, steps: 3}

// A unit in stages ends with the bits of the unit of the whole model, and each stage can be executed again alone, from
// the values that it received.
func TestUnitOfStages(t *testing.T) {
	cuts := []int{4}
	if *long {
		cuts = []int{2, 4, 6}
	}
	for _, family := range []string{"gpt2", "llama"} {
		for _, n := range cuts {
			z := small
			z.family = family
			c, err := compare(z, n, 1)
			if err != nil || c.Differ > 0 {
				t.Errorf("%s in %d stages: %+v, %v", family, n, c, err)
			}
			j, err := newJob(z, n, 1)
			if err != nil {
				t.Fatal(err)
			}
			p := j.play(nil, nil, true)
			for s, r := range p.results {
				if got, err := j.again(p, s); err != nil || !slices.Equal(got, r.Segments) {
					t.Errorf("%s in %d stages: stage %d alone ends in other states: %v", family, n, s, err)
				}
			}
		}
	}
}

// Liars in any stage, forward, backward or in the update, are convicted over a part of the operator in which they lie;
// the stages that computed from their lies are right. A stage that denies values is convicted by its signature, and one
// that stops is named.
func TestAttacks(t *testing.T) {
	j, err := newJob(small, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	var a Attacks
	if err := j.attack(&a); err != nil {
		t.Fatal(err)
	}
	if a.Liars != 12 || a.Convicted != a.Liars || a.Denials < 40 || a.Shown != a.Denials || a.Withheld < 6 ||
		a.Named != a.Withheld || a.Wrong > 0 || a.Restarts < 6 || a.Resumed != a.Restarts {
		t.Errorf("%+v", a)
	}
}

// Values that are sent smaller have the bytes of their formula, the bits of the step that is not cut, and liars in what
// makes them smaller are convicted like others.
func TestBoundaries(t *testing.T) {
	list, err := boundaries(t.Context(), 2, 1)
	if err != nil || len(list) != 4 {
		t.Fatal(list, err)
	}
	for i, b := range list {
		if b.Differ > 0 || b.Excess != 0 || i > 0 && b.Forward+b.Back >= list[0].Forward+list[0].Back {
			t.Errorf("%+v", b)
		}
	}
	if !*long {
		return
	}
	for _, s := range []boundary.Scheme{{Bits: 4}, {Columns: 4}} {
		z := small
		z.sent = s
		j, err := newJob(z, 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		var a Attacks
		if err := j.attack(&a); err != nil || a.Liars != 9 || a.Convicted != a.Liars || a.Shown != a.Denials ||
			a.Named != a.Withheld || a.Wrong > 0 {
			t.Errorf("%+v: %+v, %v", s, a, err)
		}
	}
}

// A stage that computes as it should wins the dispute with a verifier that lies.
func TestFalseChallenges(t *testing.T) {
	j, err := newJob(small, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []order.Phase{order.Forward, order.Backward, order.Update} {
		p := j.play(nil, nil, true)
		other, _, err := j.liar(1, phase)
		if err != nil {
			t.Fatal(err)
		}
		honest := j.plan
		j.plan = other // of the verifier
		mine, err := j.again(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		g, err := j.judged(p, honest, 1, mine, honest.Stages[1].Whole)
		if err != nil || g.Verdict.AsserterLies {
			t.Errorf("phase %d: %+v, %v", phase, g.Verdict, err)
		}
		j.plan = honest
	}
}

// A frame that is changed on its way, comes twice with other values, or late, or has another signature is refused at
// once.
func TestChangedMessages(t *testing.T) {
	z := small
	z.tied = false
	j, err := newJob(z, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(m *pipeline.Message)
		want   error
	}{
		"a value":      {func(m *pipeline.Message) { m.Frame.Values[0].F32()[0]++ }, pipeline.ErrNeighbour},
		"sent twice":   {func(m *pipeline.Message) { m.Frame.Task.Number = 0 }, pipeline.ErrNeighbour},
		"another step": {func(m *pipeline.Message) { m.Frame.Step++ }, pass.ErrFrame},
		"no such task": {func(m *pipeline.Message) { m.Frame.Task.Number = 7 }, pipeline.ErrMessage},
		"a signature":  {func(m *pipeline.Message) { m.Voucher.Signature[3]++ }, pipeline.ErrNeighbour},
		"another head": {func(m *pipeline.Message) { m.Voucher.Head.Frames++ }, pipeline.ErrNeighbour},
		"another side": {func(m *pipeline.Message) { m.Voucher.By = handover.Receiver }, pipeline.ErrNeighbour},
	} {
		p := j.play(nil, func(from, _ int, m *pipeline.Message) bool {
			if from == 0 && m.Frame != nil && m.Frame.Task == (order.Task{Phase: order.Forward, Number: 1}) {
				f := *m.Frame
				f.Values = slices.Clone(f.Values)
				f.Values[0] = f.Values[0].Clone()
				m.Frame, m.Voucher.Signature = &f, slices.Clone(m.Voucher.Signature)
				c.change(m)
			}
			return true
		}, false)
		if !errors.Is(p.errs[1], c.want) {
			t.Errorf("%s: %v, wanted %v", name, p.errs[1], c.want)
		}
	}
	p := j.play(nil, func(from, _ int, m *pipeline.Message) bool {
		if from == 0 && m.Frame != nil && m.Frame.Step == 1 {
			m.Frame.Step = 0 // again, and nothing else comes
		}
		return true
	}, false)
	if !errors.Is(p.errs[1], errNothing) {
		t.Errorf("frames of the step before: %v", p.errs[1])
	}
	p = j.play(nil, func(from, _ int, m *pipeline.Message) bool {
		if from == 1 && m.Frame == nil {
			m.Voucher.Head.Chain = canon.Sum("another")
		}
		return true
	}, false)
	if !errors.Is(p.errs[0], pipeline.ErrNeighbour) {
		t.Errorf("a receiver that signs other frames than it was sent: %v", p.errs[0])
	}
}

// Six stages hold a model four times as large as each of them may be.
func TestMemoryOfStages(t *testing.T) {
	z := size{family: "llama", layers: 22, width: 64, length: 12, sequences: 6, microbatch: 1, steps: 1}
	c, err := compare(z, 6, 1)
	if err != nil || c.Differ > 0 || c.LargestShare > mostMemory || c.InFlight != 6 {
		t.Errorf("%+v, %v", c, err)
	}
}
