package program_test

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

func TestAttentionRefuses(t *testing.T) {
	b := program.NewBuilder()
	inputs := 0
	in := func(dims ...int) program.Value {
		inputs++
		return b.Input(string(rune('a'+inputs)), tensor.Make(tensor.Float32, dims...))
	}
	q, k, other, rows := in(1, 4, 5, 8), in(1, 2, 6, 8), in(1, 3, 6, 8), in(1, 4, 5)
	for what, make := range map[string]func() (program.Value, error){
		"a head between groups": func() (program.Value, error) {
			return b.Attention(program.CausalAttention, 6, 0, q, other, other)
		},
		"other values than keys": func() (program.Value, error) {
			return b.Attention(program.CausalAttention, 6, 0, q, k, q)
		},
		"a query before all keys": func() (program.Value, error) {
			return b.Attention(program.CausalAttention, 0, 1, q, k, k)
		},
		"a position below zero": func() (program.Value, error) {
			return b.Attention(program.CausalAttentionGradV, -1, 0, q, k, q, rows)
		},
		"other gradients than rows": func() (program.Value, error) {
			return b.Attention(program.CausalAttentionGradQ, 6, 0, q, k, k, q, rows,
				q)
		},
		"rank 3":       func() (program.Value, error) { return b.Attention(program.CausalAttentionLSE, 0, 0, rows, rows) },
		"another kind": func() (program.Value, error) { return b.Attention(program.Add, 0, 0, q, q) },
	} {
		if _, err := make(); !errors.Is(err, program.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.Attention(program.CausalAttentionGradV, 0, 64, q, k, q, rows); err != nil {
		t.Errorf("keys after all queries have gradients, zeros: %v", err)
	}
}

func TestCrossEntropyRefuses(t *testing.T) {
	b := program.NewBuilder()
	f := func(name string, dims ...int) program.Value {
		return b.Input(name, tensor.Make(tensor.Float32, dims...))
	}
	logits, cube, short, d := f("logits", 4, 5), f("cube", 4, 5, 1), f("short", 3), f("d", 4)
	targets := b.Input("targets", tensor.Make(tensor.Int32, 4))
	for what, err := range map[string]error{
		"rank 3":             func() error { _, err := b.Apply(program.CrossEntropy, cube, targets); return err }(),
		"targets of float32": func() error { _, err := b.Apply(program.CrossEntropy, logits, d); return err }(),
		"too few factors": func() error {
			_, err := b.Apply(program.CrossEntropyGrad, logits, targets, short)
			return err
		}(),
	} {
		if !errors.Is(err, program.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
