package chain

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Errors of the secret of a validator.
var (
	// ErrNoSecret is returned for a folder without the secret of a validator.
	ErrNoSecret = errors.New("chain: the folder holds no keys of a validator")
	// ErrSecretExists is returned instead of overwriting a secret.
	ErrSecretExists = errors.New("chain: the folder holds the keys of a validator already")
)

// secretFile is where the secret of the validator in a folder is: 32 bytes.
func secretFile(home string) string { return filepath.Join(home, "config", "validator.seed") }

// ReadSecret is what all keys of the validator in a folder come from: ErrNoSecret if it has none.
func ReadSecret(home string) (seed [32]byte, err error) {
	file := secretFile(home)
	kept, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return seed, fmt.Errorf("%w: %s", ErrNoSecret, home)
	case err != nil:
		return seed, fmt.Errorf("chain: %w", err)
	case len(kept) != len(seed):
		return seed, fmt.Errorf("chain: %s has %d bytes, not %d: restore it, or begin a new chain in another folder", file, len(kept), len(seed))
	}
	return [32]byte(kept), nil
}

// RestoreSecret puts a secret in the folder of a validator, which is made if need be: ErrSecretExists if it has one.
func RestoreSecret(home string, seed [32]byte) error {
	file := secretFile(home)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), "validator.seed.*") // for nobody else to read
	if err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(seed[:])
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	err = os.Link(f.Name(), file) // unlike a rename, it replaces nothing
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrSecretExists, home)
	}
	return err
}

// MakeKeys are the keys of the validator in a folder, made if there are none yet.
func MakeKeys(home string) (Keys, error) {
	seed, err := ReadSecret(home)
	if errors.Is(err, ErrNoSecret) {
		_, _ = rand.Read(seed[:]) // never fails
		err = RestoreSecret(home, seed)
	}
	return NewKeys(seed), err
}
