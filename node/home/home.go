// Package home is the folder of one party with the secret from which all its keys are derived, which is made once,
// backed up as a phrase and never overwritten. Other packages define the rest of the folder.
package home

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account/words"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/internal/keyfile"
	"github.com/starling-network/starling/network/peer"
)

// FileKey is the name of the file with the secret: words.Secret in a file of package keyfile.
const FileKey = "key"

// Errors of this package.
var (
	ErrNoKey     = errors.New("home: the folder holds no key")
	ErrBadKey    = errors.New("home: the file is not a key")
	ErrKeyExists = errors.New("home: the folder holds a key already")
	ErrPhrase    = errors.New("home: not a backup phrase")
)

// Home is the folder and the keys of one party.
type Home struct {
	Dir    string
	secret words.Secret
}

// Open reads the folder of a party. One that does not exist, or holds no key, is made; made reports it.
func Open(dir string) (h Home, made bool, err error) {
	if h, err = Read(dir); !errors.Is(err, ErrNoKey) {
		return h, false, err
	}
	h = Home{Dir: dir}
	_, _ = rand.Read(h.secret.Bytes[:]) // never fails
	return h, true, h.keep()
}

// Exposed is the file of the key in a folder if other users of the machine may read it, or "".
func Exposed(dir string) string {
	path := filepath.Join(dir, FileKey)
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return path
}

// Read reads the folder of a party. It makes nothing: without a key there the error is ErrNoKey.
func Read(dir string) (Home, error) {
	h := Home{Dir: dir}
	path := filepath.Join(dir, FileKey)
	kept, err := keyfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, fmt.Errorf("%w: %s", ErrNoKey, dir)
	case errors.Is(err, keyfile.ErrForm):
		return h, fmt.Errorf("%w: %w", ErrBadKey, err)
	case err != nil:
		return h, err
	}
	var ok bool
	if h.secret, ok = words.ReadSecret(kept); !ok {
		return h, fmt.Errorf("%w: %s holds no secret (%d bytes)", ErrBadKey, path, len(kept))
	}
	return h, nil
}

// Restore makes the folder of the party whose phrase is given. A key that is there stays: the error is then
// ErrKeyExists. With digest the words are those of a folder whose account is not that of wallets.
func Restore(dir, phrase string, digest bool) (Home, error) {
	seed, err := ParsePhrase(phrase)
	h := Home{Dir: dir, secret: words.Secret{Bytes: seed, Digest: digest}}
	if err != nil {
		return h, err
	}
	return h, h.keep()
}

// Phrase is the secret as words, which Restore reads. Wallets open the party's account with them, unless Digest says
// otherwise.
func (h Home) Phrase() string { return h.secret.Words() }

// Digest says that the account is that of a digest, as folders of older versions have it: wallets open another account
// with the words.
func (h Home) Digest() bool { return h.secret.Digest }

// keep writes the secret, at once and durably, unless there is one.
func (h Home) keep() error {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return err
	}
	err := keyfile.Write(filepath.Join(h.Dir, FileKey), h.secret.Kept())
	if errors.Is(err, keyfile.ErrExists) {
		return fmt.Errorf("%w: %s", ErrKeyExists, h.Dir)
	}
	return err
}

// Account is the key of the party's account on the chain.
func (h Home) Account() *wallet.Key {
	if h.secret.Digest {
		return wallet.KeyFromSeed(h.Derive("account"))
	}
	return wallet.NewKey(h.secret.Account().Key)
}

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
func (h Home) Derive(purpose string) [32]byte {
	return canon.Sum("starling/key/"+purpose, h.secret.Bytes[:])
}
