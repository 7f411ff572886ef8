package serve

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
	"github.com/starling-network/starling/web/openai"
)

// Adapters beyond the room in memory are read when they are asked for, in place of the one that was last used longest
// ago; texts are those of an engine with room for all. While texts are written with all that there is room for, a
// further one is refused as busy.
func TestAdaptersAreReadOnDemand(t *testing.T) {
	dir, first := folders(t)
	list := []Adapter{{Name: "first", Dir: first}, {Name: "second", Dir: adapterOf(t, config(t), 9)},
		{Name: "third", Dir: adapterOf(t, config(t), 11)}}
	started := func(memory int64) *Engine {
		e, err := Open(dir, Options{Name: "base", Adapters: list, AdapterMemory: memory})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	}
	all, one := started(0), started(1)
	two := started(2 * all.shelf.batch.AdapterBytes())
	if all.shelf.room < 3 || one.shelf.room != 1 || two.shelf.room != 2 {
		t.Fatalf("room for %d, %d and %d adapters", all.shelf.room, one.shelf.room, two.shelf.room)
	}
	for _, i := range []int{0, 1, 0, 2, 0, 1, 2, 2} {
		r := openai.Request{Model: list[i].Name, Prompt: "x", Max: 5, Likely: -1}
		want, _ := generated(t, all, r)
		for _, e := range []*Engine{one, two} {
			if text, _ := generated(t, e, r); text != want || text == "" {
				t.Errorf("%s writes %q, and %q with room for all", r.Model, text, want)
			}
		}
	}
	if all.shelf.loads != 3 || two.shelf.loads != 5 || one.shelf.loads != 7 {
		t.Errorf("%d, %d and %d reads", all.shelf.loads, two.shelf.loads, one.shelf.loads)
	}
	release, err := one.hold(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.hold(2); !errors.Is(err, openai.ErrBusy) {
		t.Errorf("a second adapter, with room for one: %v", err)
	}
	release()
	release, err = one.hold(2)
	if err != nil {
		t.Fatal(err)
	}
	release()
	writeFiles(t, first, map[string][]byte{adapterFile: []byte("other")})
	if _, err := one.hold(1); !errors.Is(err, ErrFolder) {
		t.Errorf("an adapter that changed: %v", err)
	}
}

// An adapter whose scale or tensors are others than when its owner looked at it is not served.
func TestAdaptersOfAnotherStateAreRefused(t *testing.T) {
	for _, file := range []string{adapterConfigFile, adapterFile} {
		dir, adapter := folders(t)
		of := Adapter{Name: "tuned", Dir: adapter, State: StateOf(adapter)}
		e, err := Open(dir, Options{Name: "base", Adapters: []Adapter{of}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		raw, err := os.ReadFile(filepath.Join(adapter, file))
		if err != nil {
			t.Fatal(err)
		}
		writeFiles(t, adapter, map[string][]byte{file: append(raw, ' ')})
		if _, err := e.hold(1); !errors.Is(err, ErrFolder) {
			t.Errorf("another %s, when it is asked for: %v", file, err)
		}
		if _, err := Open(dir, Options{Name: "base", Adapters: []Adapter{of}}); !errors.Is(err, ErrFolder) {
			t.Errorf("another %s, when the server begins: %v", file, err)
		}
	}
}

// Answers of an adapter have receipts that its holder checks with the adapter. One that was written without it is
// found.
func TestAnswersOfAdaptersCanBeChecked(t *testing.T) {
	dir, adapter := folders(t)
	e, err := Open(dir, Options{Name: "base", Adapters: []Adapter{{Name: "tuned", Dir: adapter}}, Checked: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	base := checkable(t, dir)
	m, err := base.Adapted(adapter)
	if err != nil {
		t.Fatal(err)
	}
	s := signer.Signer{Model: m.Signs(), Chain: "c", Number: 2, Key: wallet.KeyFromSeed([32]byte{1})}
	for name, wrong := range map[string]bool{"tuned": false, "base": true} {
		_, out := generated(t, e, openai.Request{Model: name, Prompt: "a prompt", Max: 30, Temperature: 0.7, Seed: 3,
			Likely: -1})
		signed, err := s.Sign(out.Drawn, 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(signed); err != nil {
			t.Fatal(err)
		}
		if err := base.Verify(signed); !errors.Is(err, checked.ErrOther) {
			t.Errorf("a receipt of the adapter is one of its base: %v", err)
		}
		if at, err := m.Check(signed.Receipt, 1); err != nil || at < 0 == wrong {
			t.Errorf("an answer of %s as one of the adapter: token %d, %v", name, at, err)
		}
	}
}
