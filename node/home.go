package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/peer"
)

// home is the folder and the keys of one party.
type home struct {
	dir  string
	seed [32]byte
}

func openHome(dir string) (home, error) {
	h := home{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return h, err
	}
	path := filepath.Join(dir, "key")
	seed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		seed = make([]byte, len(h.seed))
		_, _ = rand.Read(seed) // never fails
		err = os.WriteFile(path, seed, 0o600)
	}
	if err == nil && copy(h.seed[:], seed) != len(h.seed) {
		err = fmt.Errorf("node: %s is not a key", path)
	}
	return h, err
}

func (h home) account() *client.Key { return client.KeyFromSeed(h.derive("account")) }
func (h home) peer() peer.Key       { return peer.KeyFromSeed(h.derive("peer")) }

func (h home) derive(purpose string) [32]byte { return canon.Sum("starling/key/"+purpose, h.seed[:]) }
