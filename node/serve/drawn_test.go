package serve

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/web/openai"
)

func checkable(t *testing.T, dir string) *checked.Model {
	t.Helper()
	m, err := pretrained.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	x, err := checked.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A server that is asked for answers which can be checked gives what a receipt needs, and the answers that it writes
// together with others pass the check.
func TestAnswersCanBeChecked(t *testing.T) {
	dir, adapter := folders(t)
	e, err := Open(dir, Options{Name: "base", Adapters: []Adapter{{Name: "tuned", Dir: adapter}}, Checked: true, Texts: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	m := checkable(t, dir)
	s := signer.Signer{Model: m, Chain: "starling-1", Number: 1, Key: wallet.KeyFromSeed([32]byte{1})}
	results := make([]openai.Result, 12)
	var wg sync.WaitGroup
	for i := range results {
		r := openai.Request{Model: "base", Prompt: fmt.Sprint("prompt ", i), Max: 5 + i, Temperature: float64(i%3) / 2,
			TopP: []float64{0, 0.9, 1}[i%3], Seed: uint64(i), Likely: -1}
		if i == 11 { // a neighbour
			r.Model = "tuned"
		}
		wg.Go(func() { _, results[i] = generated(t, e, r) })
	}
	wg.Wait()
	if _, err := s.Sign(nil, 5); !errors.Is(err, answer.ErrReceipt) {
		t.Error(err)
	}
	for i, out := range results[:11] {
		if len(out.Drawn.Answer) != out.Tokens || out.Drawn.Asked != 5+i {
			t.Fatalf("%+v of %+v", out.Drawn, out)
		}
		signed, err := s.Sign(out.Drawn, 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(signed); err != nil {
			t.Fatal(err)
		}
		if wrong, err := m.Check(signed.Receipt, 1); wrong != -1 || err != nil {
			t.Errorf("answer %d: token %d is wrong, %v", i, wrong, err)
		}
		signed.Receipt.Answer = slices.Clone(signed.Receipt.Answer)
		signed.Receipt.Answer[2] ^= 1
		if err := m.Verify(signed); !errors.Is(err, answer.ErrForged) {
			t.Error(err)
		}
		if wrong, err := m.Check(signed.Receipt, 1); wrong != 2 || err != nil {
			t.Errorf("answer %d: token %d is wrong, not 2, %v", i, wrong, err)
		}
	}
}

// A text that stops an answer ends what is asked for.
func TestStoppedAnswerCanBeChecked(t *testing.T) {
	dir, _ := folders(t)
	e, err := Open(dir, Options{Name: "base", Checked: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	r := openai.Request{Model: "base", Prompt: "x", Max: 9, Likely: -1}
	text, _ := generated(t, e, r)
	r.Stops = []string{text[3:4]}
	_, out := generated(t, e, r)
	if d := out.Drawn; d.Asked != len(d.Answer) || d.Asked >= 9 || d.Stopped {
		t.Errorf("%+v", d)
	}
	m := checkable(t, dir)
	signed, err := signer.Signer{Model: m, Chain: "c", Number: 1, Key: wallet.KeyFromSeed([32]byte{1})}.Sign(out.Drawn, 5)
	if err != nil {
		t.Fatal(err)
	}
	if wrong, err := m.Check(signed.Receipt, 1); wrong != -1 || err != nil {
		t.Errorf("token %d is wrong, %v", wrong, err)
	}
	for name, change := range map[string]func(r *answer.Receipt){
		"other weights":   func(r *answer.Receipt) { r.Weights[0]++ },
		"another program": func(r *answer.Receipt) { r.Program[0]++ },
	} {
		other := signed.Receipt
		change(&other)
		key := wallet.KeyFromSeed([32]byte{1})
		forged, err := answer.Sign(other, key.PublicKey(), key.Sign)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(forged); !errors.Is(err, checked.ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
