// Package keyfile stores a secret of a few bytes in a file: in plain, or encrypted under a passphrase. The passphrase
// is stretched by scrypt, and the secret encrypted by XChaCha20-Poly1305.
//
// The package does not know the purpose of the secret, nor the source of a passphrase: the program sets that once, by
// Ask.
package keyfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/crypto/scrypt"
)

// Errors of this package.
var (
	ErrForm       = errors.New("keyfile: the file is not a key")
	ErrExists     = errors.New("keyfile: the file holds a key already")
	ErrPassphrase = errors.New("keyfile: the key is encrypted, and this is not its passphrase")
	ErrLocked     = errors.New("keyfile: the key is encrypted, and no passphrase was given")
)

// The form of an encrypted file: magic, the salt, the nonce, and the encrypted secret with its tag, under the magic as
// additional data.
const (
	magic     = "starling-key-scrypt-1\n"
	saltBytes = 16
	sealed    = len(magic) + saltBytes + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead // and the secret
	maxBytes  = 4096                                                                             // of a file
)

// Cost of scrypt: 128 MiB, and a third of a second or so.
const (
	costN = 1 << 17
	costR = 8
	costP = 1
)

// ask gets the passphrase of a file.
var ask struct {
	sync.Mutex
	of func(path string) (string, error)
}

// Ask says where the passphrases of encrypted files come from. Until then there are none: ErrLocked.
func Ask(of func(path string) (string, error)) {
	ask.Lock()
	defer ask.Unlock()
	ask.of = of
}

// Read reads a file: fs.ErrNotExist if there is none, ErrForm, ErrLocked or ErrPassphrase.
func Read(path string) (secret []byte, err error) {
	data, err := os.ReadFile(path)
	switch hidden := bytes.HasPrefix(data, []byte(magic)); {
	case err != nil:
		return nil, err
	case len(data) > maxBytes || hidden && len(data) < sealed:
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrForm, path, len(data))
	case !hidden:
		return data, nil
	}
	ask.Lock()
	defer ask.Unlock()
	if ask.of == nil {
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	}
	passphrase, err := ask.of(path)
	if err != nil {
		return nil, err
	}
	return open(path, data, passphrase)
}

// Encrypted reports whether a file is encrypted.
func Encrypted(path string) (bool, error) {
	data, err := os.ReadFile(path)
	return bytes.HasPrefix(data, []byte(magic)), err
}

// Write writes a secret into a new file as it is, at once and durably: ErrExists if there is one.
func Write(path string, secret []byte) error {
	return place(path, secret, func(from string) error {
		err := os.Link(from, path) // unlike a rename, it replaces nothing
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: %s", ErrExists, path)
		}
		return err
	})
}

// Change encrypts the secret of a file under a passphrase, or decrypts it if that is empty. At every moment the file is
// the old or the new one.
func Change(path, passphrase string) error {
	data, err := Read(path)
	if err != nil {
		return err
	}
	if passphrase != "" {
		if data, err = seal(data, passphrase); err != nil {
			return err
		}
	}
	return place(path, data, func(from string) error { return os.Rename(from, path) })
}

// place writes a temporary file in the folder of path, readable by its owner alone, and moves it to path.
func place(path string, data []byte, move func(from string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := move(f.Name()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func seal(secret []byte, passphrase string) ([]byte, error) {
	data := append([]byte(magic), make([]byte, saltBytes+chacha20poly1305.NonceSizeX)...)
	_, _ = rand.Read(data[len(magic):]) // never fails
	salt, nonce := data[len(magic):][:saltBytes], data[len(magic)+saltBytes:]
	key, err := scrypt.Key([]byte(passphrase), salt, costN, costR, costP, chacha20poly1305.KeySize)
	if err != nil {
		return nil, err
	}
	a, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	return a.Seal(data, nonce, secret, []byte(magic)), nil
}

func open(path string, data []byte, passphrase string) (secret []byte, err error) {
	salt, rest := data[len(magic):][:saltBytes], data[len(magic)+saltBytes:]
	key, err := scrypt.Key([]byte(passphrase), salt, costN, costR, costP, chacha20poly1305.KeySize)
	if err != nil {
		return nil, err
	}
	a, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	secret, err = a.Open(nil, rest[:chacha20poly1305.NonceSizeX], rest[chacha20poly1305.NonceSizeX:], []byte(magic))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrPassphrase, path)
	}
	return secret, nil
}
