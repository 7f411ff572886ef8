package strategies

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/node/benchmark"
)

// A recorded run is not repeated, even if the last line was cut off, and a model that diverged is recorded as such.
func TestResultsCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	n, err := openResultsCache(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	run := func(n *resultsCache, key string, loss float64) float64 {
		got, err := n.do(Run{Key: key, Name: key}, func() (float64, int64, error) { done++; return loss, 7, nil })
		if err != nil || got.Bytes != 7 {
			t.Fatalf("%s: %d bytes, %v", key, got.Bytes, err)
		}
		return got.loss()
	}
	run(n, "a", 1.25)
	run(n, "b", math.Inf(1))
	failed := errors.New("no")
	if _, err := n.do(Run{Key: "c"}, func() (float64, int64, error) { return 0, 0, failed }); !errors.Is(err, failed) {
		t.Errorf("a run that failed: %v", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"key":"c","lo`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if n, err = openResultsCache(path, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	if a, b := run(n, "a", 9), run(n, "b", 9); a != 1.25 || !math.IsInf(b, 1) || done != 2 {
		t.Errorf("kept %v and %v, %d runs done", a, b, done)
	}
	if _, err := n.do(Run{Key: "c"}, nil); !errors.Is(err, errLater) {
		t.Errorf("a run after the limit: %v", err)
	}
	if b, _ := os.ReadFile(path); strings.Count(string(b), "\n") != 2 {
		t.Errorf("the file is %q", b)
	}
	if err := os.WriteFile(path, []byte("{}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openResultsCache(path, 0); !errors.Is(err, benchmark.ErrFile) {
		t.Errorf("nonsense: %v", err)
	}
}

// Runs are kept by all that their results depend on, and by nothing else.
func TestRunsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	s, err := newLossBench([]byte(sentences(2000)), 1, 16, 2, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	if s.cache, err = openResultsCache(path, 0); err != nil {
		t.Fatal(err)
	}
	plain := trainingRun{name: "plain", exchange: diloco("int8"), rate: gentle, units: 3, steps: 2, rounds: 2, seed: 1}
	var first Run
	for name, change := range map[string]func(*trainingRun){
		"seed": func(l *trainingRun) { l.seed = 2 }, "rate": func(l *trainingRun) { l.rate = tuned },
		"rounds":  func(l *trainingRun) { l.rounds = 1 },
		"flipped": func(l *trainingRun) { l.flipped = 1 }, "attack": func(l *trainingRun) { l.attack = &attacks[0] },
		"parallel": func(l *trainingRun) { l.mode = dataParallel },
		"codec":    func(l *trainingRun) { l.exchange = sparseLoCo(48, 2, 32) },
		"beta":     func(l *trainingRun) { l.beta = 0.99 },
	} {
		l := plain
		if first, err = s.run(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		known := len(s.cache.done)
		change(&l)
		if r, err := s.run(t.Context(), l); err != nil || len(s.cache.done) != known+1 || r.loss() == first.loss() {
			t.Errorf("%s: a loss of %v as without, %d runs after %d, %v", name, r.loss(), len(s.cache.done), known, err)
		}
	}
	known := len(s.cache.done)
	plain.name = "another name"
	if r, err := s.run(t.Context(), plain); err != nil || r != first || len(s.cache.done) != known {
		t.Errorf("the same run: %v and %v, %v", r, first, err)
	}
}

// Concurrent runs end with the same losses as alone, and are reported one by one.
func TestConcurrentRuns(t *testing.T) {
	plain := trainingRun{exchange: diloco("int8"), rate: gentle, units: 2, steps: 2, rounds: 2}
	var losses [2][]float64
	for i, abreast := range []int{1, 3} {
		s, err := newLossBench([]byte(sentences(2000)), 1, 16, 2, 8, abreast)
		if err != nil {
			t.Fatal(err)
		}
		if s.cache, err = openResultsCache("", 0); err != nil {
			t.Fatal(err)
		}
		var runs []trainingRun
		for plain.seed = range uint64(6) {
			runs = append(runs, plain)
		}
		if runs, err = s.left(runs); err != nil || len(runs) != 6 {
			t.Fatal(len(runs), err)
		}
		told := 0
		if err := s.runAll(t.Context(), runs, func(_ Run, over, all int) {
			if told++; over != told || all != 6 {
				t.Errorf("%d of %d, told %d times", over, all, told)
			}
		}); err != nil || told != 6 {
			t.Fatal(told, err)
		}
		if losses[i], _, err = s.known(plain, 5); err != nil || len(losses[i]) != 5 {
			t.Fatal(losses[i], err)
		}
		if runs, err = s.left(runs); err != nil || len(runs) != 0 {
			t.Errorf("%d runs are left, %v", len(runs), err)
		}
	}
	if !slices.Equal(losses[0], losses[1]) {
		t.Errorf("alone %v, side by side %v", losses[0], losses[1])
	}
}

// The losses of a few runs are reported, and no bar before all seeds are done.
func TestAttacksInPart(t *testing.T) {
	s, err := newLossBench([]byte(sentences(2000)), 1, 16, 2, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	if s.cache, err = openResultsCache("", 0); err != nil {
		t.Fatal(err)
	}
	w := byzantineBench{bench: s, rounds: 1}
	for _, step := range []struct {
		runs                []trainingRun
		attacks, seeds, bar int
	}{{nil, 0, 0, 0}, {w.runs(1)[:3], 1, 1, 0}, {w.runs(1), 5, 1, 0}, {w.runs(2), 5, 2, 2}} {
		if err := s.runAll(t.Context(), step.runs, nil); err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := r.addAttackRows(w, 2); err != nil || len(r.Attacks) != step.attacks || len(r.Bars) != step.bar {
			t.Errorf("after %d runs: %+v, %v", len(step.runs), r, err)
		}
		if step.attacks > 0 && len(r.Attacks[0].Rules["mean"].Loss) != step.seeds {
			t.Errorf("after %d runs: %+v", len(step.runs), r.Attacks[0].Rules["mean"])
		}
	}
}
