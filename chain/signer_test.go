package chain_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain"
)

// Only the file of the validator's secret, which may be encrypted, holds its keys. The record of signed votes survives
// a restart.
func TestConsensusKeyIsInOneFile(t *testing.T) {
	home := t.TempDir()
	run := func() (*chain.Validator, error) {
		v, err := chain.Start(t.Context(), config(home))
		if err == nil {
			err = heights(context.WithoutCancel(t.Context()), v, func(h int64) bool { return h < 3 })
			v.Stop()
		}
		return v, err
	}
	old := filepath.Join(home, "config", "priv_validator_key.json") // as CometBFT writes it
	if err := os.MkdirAll(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := run()
	if err != nil {
		t.Fatal(err)
	}
	key := v.Keys().Consensus.Bytes()
	text := []byte(base64.StdEncoding.EncodeToString(key))
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, key[:32]) || bytes.Contains(data, text) {
			t.Errorf("%s has the consensus key", path)
		}
		return err
	})
	if _, e := os.Stat(old); err != nil || e == nil {
		t.Errorf("the file of the key is there still: %v, %v", err, e)
	}
	state := filepath.Join(home, "data", "priv_validator_state.json")
	before, err := os.ReadFile(state)
	if err != nil || !strings.Contains(string(before), "signature") {
		t.Fatalf("%s, %v", before, err)
	}
	if _, err := run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "signed last") {
		t.Errorf("who does not know what it signed votes: %v", err)
	}
}
