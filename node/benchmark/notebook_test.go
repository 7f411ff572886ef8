package benchmark

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is kept is not done again, also when a line was cut off, and a model that diverged is kept as such.
func TestNotebook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	n, err := openNotebook(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	run := func(n *notebook, key string, loss float64) float64 {
		got, sent, err := n.do(Run{Key: key, Name: key}, func() (float64, int64, error) { done++; return loss, 7, nil })
		if err != nil || sent != 7 {
			t.Fatalf("%s: %d bytes, %v", key, sent, err)
		}
		return got
	}
	run(n, "a", 1.25)
	run(n, "b", math.Inf(1))
	failed := errors.New("no")
	if _, _, err := n.do(Run{Key: "c"}, func() (float64, int64, error) { return 0, 0, failed }); !errors.Is(err, failed) {
		t.Errorf("a run that failed: %v", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"key":"c","lo`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if n, err = openNotebook(path, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	if a, b := run(n, "a", 9), run(n, "b", 9); a != 1.25 || !math.IsInf(b, 1) || done != 2 {
		t.Errorf("kept %v and %v, %d runs done", a, b, done)
	}
	if _, _, err := n.do(Run{Key: "c"}, nil); !errors.Is(err, errLater) {
		t.Errorf("a run after the limit: %v", err)
	}
	if b, _ := os.ReadFile(path); strings.Count(string(b), "\n") != 2 {
		t.Errorf("the file is %q", b)
	}
	if err := os.WriteFile(path, []byte("{}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openNotebook(path, 0); !errors.Is(err, ErrFile) {
		t.Errorf("nonsense: %v", err)
	}
}

// Lessons are kept by all that their results depend on, and by nothing else.
func TestLessonsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	s, err := newSchool([]byte(sentences(2000)), 1, 16, 2, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	if s.notes, err = openNotebook(path, 0); err != nil {
		t.Fatal(err)
	}
	plain := lesson{name: "plain", exchange: diloco("int8"), rate: gentle, units: 3, steps: 2, rounds: 2, seed: 1}
	var first float64
	for name, change := range map[string]func(*lesson){
		"seed": func(l *lesson) { l.seed = 2 }, "rate": func(l *lesson) { l.rate = tuned }, "rounds": func(l *lesson) { l.rounds = 1 },
		"flipped": func(l *lesson) { l.flipped = 1 }, "attack": func(l *lesson) { l.attack = &attacks[0] },
		"parallel": func(l *lesson) { l.pupils = parallel }, "codec": func(l *lesson) { l.exchange = sparse(48, 2, 32) }, "beta": func(l *lesson) { l.beta = 0.99 },
	} {
		l := plain
		if first, _, err = s.learn(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		known := len(s.notes.done)
		change(&l)
		if loss, _, err := s.learn(t.Context(), l); err != nil || len(s.notes.done) != known+1 || loss == first {
			t.Errorf("%s: a loss of %v as without, %d runs after %d, %v", name, loss, len(s.notes.done), known, err)
		}
	}
	known := len(s.notes.done)
	plain.name = "another name"
	if loss, _, err := s.learn(t.Context(), plain); err != nil || loss != first || len(s.notes.done) != known {
		t.Errorf("the same lesson: %v and %v, %v", loss, first, err)
	}
}
