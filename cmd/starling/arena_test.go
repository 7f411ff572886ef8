package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/cmd/starling/arena"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

const arenaText = "the quick brown fox jumps over the lazy dog, and the dog sleeps on. "

// Commands play a whole contest on a chain in this process: three entrants, of whom the last copies the second with its
// hidden units in another order, and three evaluators, of which one is a process that verifies and hosts a model. The
// better model has the larger part of the prize, the copy loses its deposit, the evaluators have their fees, and the
// books are equal.
func TestArena(t *testing.T) {
	onlyLong(t)
	l := startLedger(t, "consumer", "ann", "bob", "cyd", "judge0", "judge1", "judge2")
	on := []string{"--network", l.network}
	text := filepath.Join(l.dir, "held.txt")
	l.must(os.WriteFile(text, []byte(strings.Repeat(arenaText, 30)), 0o600))
	better := unigram(t, 2)
	models := map[string]map[string]*tensor.Tensor{"ann": config(t).Init(1), "bob": better, "cyd": reordered(better)}
	for name, w := range models {
		l.model(name, w)
	}
	for i := range 3 {
		l.must(l.clients[fmt.Sprint("judge", i)].Registry.Register(t.Context(), registry.Participant{
			Roles: []crew.Role{crew.Verifier}, PeerID: fmt.Sprint("judge", i), Stake: 10_000_000}))
	}
	l.refuses(2, "--prize and --tokenizer", l.as("consumer", "market", "arena", "create", text)...)
	l.refuses(2, "ARENA_TEXT", l.as("consumer", "market", "arena", "create", text, "--tokenizer", l.folder("bob"),
		"--prize", "20", "--window", "1000")...)
	create := l.as("consumer", "market", "arena", "create", text, "--tokenizer", l.folder("bob"), "--prize", "20",
		"--bond", "5", "--deposit", "1", "--fee", "0.5", "--window", "16", "--examples", "120", "--evaluators", "3",
		"--entries", "3", "--enter-blocks", "2000", "--reveal-blocks", "1000", "--judge-blocks", "1000", "--places", "2",
		"-o", "json")
	var c arena.Shown
	for range 2 { // the second call finds the contest of the first
		l.must(json.Unmarshal([]byte(l.says("", create...)), &c))
		if c.Contest != 1 || c.Phase != "entering" || c.Prize != "20.00" || c.Length != 16 || c.Examples != 120 {
			t.Fatalf("%+v", c)
		}
	}
	l.says("held.txt", append(on, "market", "arena", "list")...)
	l.must(os.WriteFile(filepath.Join(l.folder("ann"), "modeling.py"), []byte("import os"), 0o600))
	l.refuses(10, "ARENA_CODE", l.as("ann", "market", "arena", "enter", "1", l.folder("ann"))...)
	l.must(os.Remove(filepath.Join(l.folder("ann"), "modeling.py")))
	l.must(os.WriteFile(filepath.Join(l.folder("ann"), "tokenizer.json"), []byte("{}"), 0o600))
	l.refuses(5, "ARENA_TOKENIZER", l.as("ann", "market", "arena", "enter", "1", l.folder("ann"))...)
	l.must(os.Remove(filepath.Join(l.folder("ann"), "tokenizer.json")))
	l.refuses(1, "ARENA_3", l.as("consumer", "market", "arena", "enter", "1", l.folder("ann"))...)
	for i, name := range []string{"ann", "bob", "cyd"} {
		want := fmt.Sprintf("entry %d of contest 1", i+1)
		l.says(want, l.as(name, "market", "arena", "enter", "1", l.folder(name))...)
	}
	l.says("entry 3 of contest 1", l.as("cyd", "market", "arena", "enter", "1", l.folder("cyd"))...)
	l.refuses(3, "ARENA_UNKNOWN", l.as("judge0", "market", "arena", "reveal", "1")...)
	l.refuses(1, "ARENA_10", l.as("cyd", "market", "arena", "judge")...)

	var waits []func()
	besides := l.besides("judge2", l.folder("bob"))
	for _, name := range []string{"judge0", "judge1"} {
		p := command(t, l.as(name, "market", "arena", "judge", "--contest", "1", "--bond", "2",
			"--private")...)
		says(t, news(t, p), "evaluates, with a bond of 2.00 ZEN")
		waits = append(waits, func() { l.must(p.Wait()) })
	}
	for _, name := range []string{"consumer", "ann", "bob", "cyd"} {
		p := command(t, l.as(name, "market", "arena", "reveal", "1", "--listen", "127.0.0.1:0")...)
		says(t, news(t, p), "the files are served at")
		waits = append(waits, func() { l.must(p.Wait()) })
	}
	for _, wait := range waits {
		wait()
	}
	l.judged(on)
	besides.hosts("judge0")
	besides.drains()
}

// judged checks the end of the contest.
func (l *ledger) judged(on []string) {
	l.t.Helper()
	var c arena.Shown
	out := l.says("", append(on, "market", "arena", "show", "1", "-o", "json")...)
	l.must(json.Unmarshal([]byte(out), &c))
	if c.Phase != "paid" || len(c.Entries) != 3 || len(c.Panel) != 3 {
		l.t.Fatal(out)
	}
	ann, bob, cyd := c.Entries[0], c.Entries[1], c.Entries[2]
	if bob.Place != 1 || bob.Prize != "13.333334" || ann.Place != 2 || ann.Prize != "6.666666" || cyd.Status != "copy" ||
		*cyd.Of != 2 || bob.Loss > 3.5 || math.Abs(ann.Loss-math.Log(256)) > 0.1 {
		l.t.Error(out)
	}
	l.says("copy of 2", append(on, "market", "arena", "show", "1")...)
	held := func(name string) uint64 {
		n, err := l.clients[name].Coins.Balance(l.t.Context(), l.clients[name].Address())
		l.must(err)
		return n
	}
	// all accounts paid some fees of transactions
	for name, want := range map[string]float64{"consumer": 78.5, "ann": 106.67, "bob": 113.33, "cyd": 99} {
		if got := float64(held(name)) / 1e6; got > want+0.005 || got < want-0.2 {
			l.t.Errorf("%s has %g ZEN, wanted about %g", name, got, want)
		}
	}
	l.says("2.00 ZEN came back", l.as("judge0", "market", "arena", "retire")...)
	l.refuses(1, "ARENA_10", l.as("judge0", "market", "arena", "retire")...)
	l.blocks(func(ctx context.Context) bool {
		all, err := books.Count(ctx, l.clients["consumer"])
		return err == nil && !slices.ContainsFunc(all, func(b books.ModuleBalance) bool { return !b.Balanced() })
	})
}

func (l *ledger) folder(name string) string { return filepath.Join(l.dir, "model-"+name) }

// model writes the folder of a model.
func (l *ledger) model(name string, w map[string]*tensor.Tensor) {
	l.t.Helper()
	l.must(os.Mkdir(l.folder(name), 0o755))
	l.must(os.WriteFile(filepath.Join(l.folder(name), "tokenizer.json"), tokenizer.Bytes().JSON(), 0o600))
	m := folder.Model{Config: config(l.t), Tensors: w}
	files, err := m.Files(1 << 30)
	l.must(err)
	for _, f := range files {
		out, err := os.Create(filepath.Join(l.folder(name), f.Name))
		l.must(err)
		l.must(f.Write(out))
		l.must(out.Close())
	}
}

func config(t *testing.T) architecture.Config {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": tokenizer.Bytes().VocabSize(),
		"n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 64})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// unigram are the weights of a model that knows how often each letter of the text is: the norm before its output gives
// the same vector for each token.
func unigram(t *testing.T, seed uint64) map[string]*tensor.Tensor {
	w := config(t).Init(seed)
	clear(w["transformer.ln_f.weight"].F32())
	w["transformer.ln_f.bias"].F32()[0] = 1
	counts := map[byte]float64{}
	for _, b := range []byte(arenaText) {
		counts[b]++
	}
	embedding := w["transformer.wte.weight"].F32()
	for id := range len(embedding) / 32 {
		embedding[id*32] = float32(math.Log(0.001 + counts[byte(id)]))
	}
	return w
}

// reordered is a copy of a model with its hidden units in the opposite order.
func reordered(from map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	w := map[string]*tensor.Tensor{}
	for name, x := range from {
		y := tensor.New(x.Shape)
		copy(y.F32(), x.F32())
		switch n := x.Shape.Dims[0]; {
		case strings.HasSuffix(name, "c_fc.weight"):
			for i := range n {
				slices.Reverse(y.F32()[i*64 : (i+1)*64])
			}
		case strings.HasSuffix(name, "c_fc.bias"):
			slices.Reverse(y.F32())
		case strings.HasSuffix(name, "mlp.c_proj.weight"):
			for i := range n {
				copy(y.F32()[i*32:(i+1)*32], x.F32()[(n-1-i)*32:(n-i)*32])
			}
		}
		w[name] = y
	}
	return w
}
