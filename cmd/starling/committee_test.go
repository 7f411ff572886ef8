package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/cmd/starling/committee"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

const committeeJob = `apiVersion: starling/v1
kind: FederatedJob
name: foxes
model: {architecture: gpt2, config: {n_layer: 1, n_embd: 32, n_head: 2, n_positions: 16}}
datasets: [{path: "*.txt"}]
sequence_len: 16
val_set_size: 0.2
training: {max_steps: 24, global_batch_size: 8, learning_rate: 1.0e-2}
strategy: {method: fedavg, sync_steps: 8}
federated: {owners: 4, updates: public}
`

// Processes play a committee of three rounds on a chain in this process: a host, two owners with text like that of the
// sets, one with noise, and three evaluators. The first two share the pay, the third has a reason why it has nothing,
// the model learns, and the books are equal.
func TestCommittee(t *testing.T) {
	l := startLedger(t, "consumer", "ann", "bob", "cyd", "judge0", "judge1", "judge2")
	on := []string{"--network", l.network}
	text, job := filepath.Join(l.dir, "held.txt"), filepath.Join(l.dir, "job", "job.yaml")
	noise := make([]byte, 4000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte('!' + random.IntN(90))
	}
	for path, content := range map[string]string{text: strings.Repeat(arenaText, 80), job: committeeJob,
		filepath.Join(l.dir, "job", "sample.txt"): strings.Repeat("A fox. ", 200),
		filepath.Join(l.dir, "data-ann", "a.txt"): strings.Repeat("the quick brown fox jumps over the dog. ", 60),
		filepath.Join(l.dir, "data-bob", "b.txt"): strings.Repeat("the lazy dog sleeps, and the brown fox jumps. ", 60),
		filepath.Join(l.dir, "data-cyd", "c.txt"): string(noise)} {
		l.must(os.MkdirAll(filepath.Dir(path), 0o755))
		l.must(os.WriteFile(path, []byte(content), 0o600))
	}
	for i := range 3 {
		l.must(l.clients[fmt.Sprint("judge", i)].Registry.Register(t.Context(), registry.Participant{
			Roles: []crew.Role{crew.Verifier}, PeerID: fmt.Sprint("judge", i), Stake: 10_000_000}))
	}
	out := filepath.Join(l.dir, "out")
	host := l.as("consumer", "market", "committee", "host", job, "--text", text, "--pay", "3", "--fee", "0.1", "--stake",
		"2", "--drawn", "3", "--median", "3", "--evaluators", "3", "--window", "16", "--examples", "120", "--train-blocks",
		"1000", "--reveal-blocks", "400", "--judge-blocks", "400", "--listen", "127.0.0.1:0", "--dir", out, "--private")
	l.refuses(2, "--pay and --text", l.as("consumer", "market", "committee", "host", job)...)
	l.refuses(5, "COMMITTEE_JOB", append(host, "--set", "federated.updates=masked")...)
	l.refuses(2, "COMMITTEE_TEXT", append(host, "--window", "200")...)

	var waits []func()
	begin := func(says_ string, args ...string) {
		p := command(t, args...)
		says(t, news(t, p), says_)
		waits = append(waits, func() { l.must(p.Wait()) })
	}
	begin("committee 1: 3 rounds", append(host, "-q=false")...)
	for i := range 3 {
		p := command(t, l.as(fmt.Sprint("judge", i), "market", "arena", "judge", "--bond", "2", "--private")...)
		says(t, news(t, p), "evaluates, with a bond of 2.00 ZEN")
		defer func() { _ = p.Process.Kill(); _ = p.Wait() }()
	}
	for _, name := range []string{"ann", "bob", "cyd"} {
		begin("the models are served at", l.as(name, "market", "committee", "join", "1", "--data",
			filepath.Join(l.dir, "data-"+name), "--listen", "127.0.0.1:0", "--private")...)
	}
	for _, wait := range waits {
		wait()
	}
	var v committee.Shown
	answer := l.says("", append(on, "market", "committee", "show", "1", "-o", "json")...)
	l.must(json.Unmarshal([]byte(answer), &v))
	if v.Phase != "over" || v.Scored == 0 || v.Members != 0 {
		t.Fatal(answer)
	}
	t.Log(answer)
	l.paid(v)
	l.says("foxes", append(on, "market", "committee", "list")...)
	l.refuses(1, "ARENA_21", l.as("ann", "market", "committee", "leave", "1")...)
	show := append(on, "market", "committee", "show")
	l.refuses(3, "NOT_FOUND", append(show, "1", "--contest", "4")...)
	id, err := l.clients["consumer"].Arena.Create(t.Context(), arena.Terms{Title: "x", Prize: 1000, Panel: 3,
		Set: canon.Sum("set"), Examples: 100, Vocab: 10, Length: 10, MaxBytes: 10, Most: 2, Entering: 20, Revealing: 20,
		Judging: 20, Places: 1, Tokenizer: canon.Sum("tokenizer")})
	if err != nil || id != 4 {
		t.Fatal(id, err)
	}
	l.refuses(3, "COMMITTEE_CONTEST", append(show, "1", "--contest", "4")...)
	l.blocks(func(ctx context.Context) bool {
		all, err := books.Count(ctx, l.clients["consumer"])
		return err == nil && !slices.ContainsFunc(all, func(b books.ModuleBalance) bool { return !b.Balanced() })
	})
	if _, err := os.Stat(filepath.Join(out, "model.safetensors")); err != nil {
		t.Error(err)
	}
}

// paid checks what each member has for all rounds of a committee, and that each zero has a reason.
func (l *ledger) paid(v committee.Shown) {
	l.t.Helper()
	held := map[string]float64{}
	for _, name := range []string{"ann", "bob", "cyd"} {
		n, err := l.clients[name].Coins.Balance(l.t.Context(), l.clients[name].Address())
		l.must(err)
		held[name] = float64(n)/1e6 - 100
	}
	if held["ann"]+held["bob"] < 3 || held["cyd"] > 0.2*min(held["ann"], held["bob"]) {
		l.t.Errorf("%v", held)
	}
	for _, o := range v.Outcomes {
		if (o.Why == "") != (o.Paid != "0.00") {
			l.t.Errorf("%+v", o)
		}
	}
}
