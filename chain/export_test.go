package chain_test

import (
	"errors"
	"testing"

	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/chain"
)

// A real validator continues from its own exported state, in its folder and under its keys, and has a beacon again.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if _, err := chain.Export(home); err == nil {
		t.Error("an empty folder is exported")
	}
	start := func(after int64) int64 {
		v, err := chain.Start(t.Context(), config(home))
		if err != nil {
			t.Fatal(err)
		}
		defer v.Stop()
		first, last := int64(0), int64(0)
		err = heights(t.Context(), v, func(h int64) bool {
			if first == 0 {
				first = h
			}
			last = h
			return h < first+3
		})
		if err != nil || first <= after {
			t.Fatalf("height %d after %d (%v)", first, after, err)
		}
		if _, err := chain.Export(home); err == nil {
			t.Error("a running validator is exported")
		}
		return last
	}
	last := start(0)
	doc, err := chain.Export(home)
	if err != nil {
		t.Fatal(err)
	}
	if doc.InitialHeight <= last {
		t.Errorf("the export goes on at height %d, after %d", doc.InitialHeight, last)
	}
	raw, err := cmtjson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err = cmttypes.GenesisDocFromJSON(raw); err != nil {
		t.Fatal(err)
	}
	aside, err := chain.Import(home, doc)
	if err != nil || aside == "" {
		t.Fatalf("%q, %v", aside, err)
	}
	if _, err := chain.Export(home); !errors.Is(err, chain.ErrNoState) {
		t.Errorf("a chain without a block: %v", err)
	}
	start(last)
	if again, err := chain.Export(home); err != nil || again.InitialHeight < doc.InitialHeight+3 {
		t.Errorf("%v", err)
	}
}
