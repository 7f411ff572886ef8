// Package home is the folder of one party: the secret that all its keys come from, which is made once, backed up as a
// phrase and never overwritten, and the lock that keeps a second process out.
//
// What else lies in the folder belongs to those who put it there.
package home

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/peer"
)

// FileKey is the name of the file with the secret, 32 bytes.
const FileKey = "key"

// Errors of this package.
var (
	ErrNoKey     = errors.New("home: the folder holds no key")
	ErrBadKey    = errors.New("home: the file is not a key")
	ErrKeyExists = errors.New("home: the folder holds a key already")
	ErrPhrase    = errors.New("home: not a backup phrase")
	ErrInUse     = errors.New("home: another process uses the folder")
)

// Home is the folder and the keys of one party.
type Home struct {
	Dir  string
	seed [32]byte
}

// Open reads the folder of a party. One that does not exist, or holds no key, is made; made reports it.
func Open(dir string) (h Home, made bool, err error) {
	if h, err = Read(dir); !errors.Is(err, ErrNoKey) {
		return h, false, err
	}
	h = Home{Dir: dir}
	_, _ = rand.Read(h.seed[:]) // never fails
	return h, true, h.keep()
}

// Read reads the folder of a party. It makes nothing: without a key there the error is ErrNoKey.
func Read(dir string) (Home, error) {
	h := Home{Dir: dir}
	path := filepath.Join(dir, FileKey)
	seed, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, fmt.Errorf("%w: %s", ErrNoKey, dir)
	case err != nil:
		return h, err
	case copy(h.seed[:], seed) != len(seed) || len(seed) != len(h.seed):
		return h, fmt.Errorf("%w: %s has %d bytes, not %d", ErrBadKey, path, len(seed), len(h.seed))
	}
	return h, nil
}

// Restore makes the folder of the party whose phrase is given. A key that is there stays: the error is then ErrKeyExists.
func Restore(dir, phrase string) (Home, error) {
	seed, err := ParsePhrase(phrase)
	h := Home{Dir: dir, seed: seed}
	if err != nil {
		return h, err
	}
	return h, h.keep()
}

// Phrase is the secret as words, which Restore reads.
func (h Home) Phrase() string { return PhraseOf(h.seed) }

// keep writes the secret, at once and durably, unless there is one.
func (h Home) keep() error {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(h.Dir, FileKey+".*") // for nobody else to read
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(h.seed[:])
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// Unlike a rename, a link replaces nothing.
	err = os.Link(f.Name(), filepath.Join(h.Dir, FileKey))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrKeyExists, h.Dir)
	}
	return err
}

// Account is the key of the party's account on the chain.
func (h Home) Account() *client.Key { return client.KeyFromSeed(h.Derive("account")) }

// Peer is the key of the party's network host.
func (h Home) Peer() peer.Key { return peer.KeyFromSeed(h.Derive("peer")) }

// PeerID names the party among the network's hosts.
func (h Home) PeerID() string {
	id, err := peer.IDOf(h.Peer())
	if err != nil {
		panic(err) // the key is of a kind that has one
	}
	return id.String()
}

// Derive makes a secret for a purpose. It says nothing about those for other purposes.
func (h Home) Derive(purpose string) [32]byte { return canon.Sum("starling/key/"+purpose, h.seed[:]) }
