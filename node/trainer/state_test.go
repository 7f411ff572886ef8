package trainer

import (
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/web/tinker"
)

// A model is computed in the version of the numerics of its run, also after the network has another one, and models
// without a run in that of the network.
func TestNumericsOfRuns(t *testing.T) {
	tr, err := Open(baseModel(t, false), Options{Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"led", "free"} {
		if err := tr.Create(name, tinker.Create{Rank: 2, Attention: true}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := StateOf(tr, "led")
	if err != nil {
		t.Fatal(err)
	}
	s.Numerics = kernel.Version1
	if err := Adopt(tr, "led", s); err != nil {
		t.Fatal(err)
	}
	if !Follow(tr, kernel.Version2) || Follow(tr, kernel.Version2) {
		t.Error("a change of the version is not told, or told twice")
	}
	for name, want := range map[string]uint32{"led": kernel.Version1, "free": kernel.Version2} {
		c, err := tr.programs.of(key{kind: forward, rows: 1, length: minLength}, tr.models[name].weights)
		if err != nil || c.key.numerics != want {
			t.Errorf("%s is computed in version %d, want %d: %v", name, c.key.numerics, want, err)
		}
	}
}
