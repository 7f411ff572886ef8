package chain_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
)

// Replaying the blocks of a validator gives the agreed states; from another genesis it does not, and the first block
// shows the difference.
func TestReplay(t *testing.T) {
	home, nothing := t.TempDir(), func(int64, int64) {}
	if _, err := chain.Replay(t.Context(), home, 0, nothing); err == nil {
		t.Error("an empty folder is played back")
	}
	c := config(home)
	one, other := identity.NewKeys([32]byte{1}), identity.NewKeys([32]byte{2})
	c.Accounts = []chain.Funded{
		{Address: one.Address(), Amount: 424242},
		{Address: other.Address(), Amount: 434343},
	}
	v, err := chain.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	err = heights(t.Context(), v, func(h int64) bool { return h < 6 })
	if _, running := chain.Replay(t.Context(), home, 0, nothing); running == nil {
		t.Error("a running validator is played back")
	}
	v.Stop()
	if err != nil {
		t.Fatal(err)
	}
	blocks := int64(0)
	r, err := chain.Replay(t.Context(), home, 0, func(int64, int64) { blocks++ })
	if err != nil || r.Different != nil || r.From != 1 || r.To < 6 || blocks != r.To || r.ChainID != "test" {
		t.Errorf("%+v after %d blocks, %v", r, blocks, err)
	}
	if r, err := chain.Replay(t.Context(), home, 3, nothing); err != nil || r.To != 3 || r.Different != nil {
		t.Errorf("until 3: %+v, %v", r, err)
	}
	file := filepath.Join(home, "config", "genesis.json")
	doc, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.NewReplacer("424242", "434343", "434343", "424242").Replace(string(doc))),
			0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err = chain.Replay(t.Context(), home, 0, nothing)
	if err != nil || r.Different == nil || r.Different.Height != 1 || r.Different.Agreed == r.Different.Replayed {
		t.Errorf("another genesis: %+v, %v", r, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Replay(t.Context(), home, 0, nothing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no genesis: %v", err)
	}
}
