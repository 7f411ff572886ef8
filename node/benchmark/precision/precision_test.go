package precision

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/node/benchmark"
)

// Every precision learns a text whose words are few, to losses near each other.
func TestMeasure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	random := rand.New(rand.NewPCG(1, 1))
	words := []string{"river ", "stone ", "cloud ", "leaf. "}
	var text strings.Builder
	for range 4000 {
		text.WriteString(words[random.IntN(len(words))])
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Measure(t.Context(), Options{Data: path, Seeds: 1, Steps: 12, Threads: 2, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != 3 || len(r.Bars) != 2 {
		t.Fatalf("%+v", r)
	}
	whole := r.Mean["fp32"]
	for name, loss := range r.Mean {
		if !(loss < 4.5) || name != "fp32" && (loss == whole || loss > whole+0.2 || loss < whole-0.2) {
			t.Errorf("%s: loss %v, fp32 %v", name, loss, whole)
		}
	}
}

func TestRefused(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("too short"), 0o644); err != nil {
		t.Fatal(err)
	}
	good := Options{Data: short, Seeds: 1, Steps: 1, Threads: 1, Progress: func(string) {}}
	if _, err := Measure(t.Context(), good); !errors.Is(err, benchmark.ErrFile) {
		t.Errorf("a short text: %v", err)
	}
	good.Steps = 0
	if _, err := Measure(t.Context(), good); !errors.Is(err, benchmark.ErrOption) {
		t.Errorf("no steps: %v", err)
	}
}
