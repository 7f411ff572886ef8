package model

import (
	"errors"
	"fmt"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// extend reads tokens in pieces of the given length, the last one filled up with token 0, and returns the logits after
// each piece.
func extend(t *testing.T, c architecture.Config, w state, tokens []int32, length, past int) (logits [][]float32) {
	t.Helper()
	p, err := Extend(c, 1, length, past, false)
	e := mustCompile(t, p, err)
	layers, memory := Memory(c, past)
	in := inputs(w, tensor.New(tensor.Make(tensor.Int32, 1, length)))
	for i := range layers {
		in[KeysName(i, 0)], in[ValuesName(i, 0)] = tensor.New(memory), tensor.New(memory)
	}
	for start := 0; start < len(tokens); start += length {
		clear(in["tokens"].I32())
		n := copy(in["tokens"].I32(), tokens[start:])
		in["start"], in["last"] = tensor.FromI32([]int32{int32(start)}, 1), tensor.FromI32([]int32{int32(n - 1)}, 1)
		out := mustRun(t, e, in)
		logits = append(logits, out["logits"].F32())
		for i := range layers {
			for _, name := range []string{KeysName(i, 0), ValuesName(i, 0)} {
				row := memory.Elements() / past
				copy(in[name].F32()[start*row:], out[name].F32()[:n*row])
			}
		}
	}
	return logits
}

func TestExtendGivesTheLogitsOfTheWhole(t *testing.T) {
	for name, c := range tiny(t) {
		n := c.Context()
		w, tokens := strongWeights(c.Tensors()), someTokens(c, 1, n, 3)
		p, err := Logits(c, 1, n)
		want := mustRun(t, mustCompile(t, p, err), inputs(w, tokens))["logits"].F32()
		for _, length := range []int{1, 3, n} {
			for k, got := range extend(t, c, w, tokens.I32(), length, n) {
				at := min((k+1)*length, n) - 1
				for j, x := range got {
					checkNear(t, fmt.Sprintf("%s by %d: logit %d of token %d", name, length, j, at), float64(x),
						float64(want[at*c.VocabSize()+j]), 2e-5)
				}
			}
		}
	}
}

// TestExtendForgetsWhatDoesNotCount changes the memory from start on, and the tokens after the last one.
func TestExtendForgetsWhatDoesNotCount(t *testing.T) {
	for name, c := range tiny(t) {
		const length, past, start = 3, 4, 2
		p, err := Extend(c, 1, length, past, false)
		e := mustCompile(t, p, err)
		layers, memory := Memory(c, past)
		run := func(filler int32, rest float32) []float32 {
			in := inputs(strongWeights(c.Tensors()), tensor.FromI32([]int32{5, 6, filler}, 1, length))
			in["start"], in["last"] = tensor.FromI32([]int32{start}, 1), tensor.FromI32([]int32{1}, 1)
			for i := range layers {
				for k, n := range []string{KeysName(i, 0), ValuesName(i, 0)} {
					m := tensor.New(memory)
					for j := range m.F32() {
						m.F32()[j] = float32(i+k+j%7) / 8
						if j >= start*memory.Elements()/past {
							m.F32()[j] = rest
						}
					}
					in[n] = m
				}
			}
			return mustRun(t, e, in)["logits"].F32()
		}
		want, got := run(0, 0), run(9, 1000)
		for j := range want {
			if got[j] != want[j] {
				t.Fatalf("%s: logit %d is %v, %v with other tokens and memory that do not count", name, j, want[j], got[j])
			}
		}
	}
}

func TestExtendRefusesLengths(t *testing.T) {
	c := tiny(t)["gpt2"]
	for _, size := range [][2]int{{0, 1}, {1, 0}, {c.Context() + 1, 1}, {1, c.Context() + 1}} {
		if _, err := Extend(c, 1, size[0], size[1], false); !errors.Is(err, ErrStep) {
			t.Errorf("%v: %v", size, err)
		}
	}
}
