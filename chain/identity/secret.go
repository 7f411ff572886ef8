package identity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/chain/account/words"
	"github.com/starling-network/starling/internal/keyfile"
)

// Errors about the secret of a validator.
var (
	// ErrNoSecret is returned for a folder without the secret of a validator.
	ErrNoSecret = errors.New("identity: the folder holds no keys of a validator")
	// ErrSecretExists is returned instead of overwriting a secret.
	ErrSecretExists = errors.New("identity: the folder holds the keys of a validator already")
)

// SecretFile is the path of the secret of the validator in a folder: a file of package keyfile that holds
// words.Secret.Kept.
func SecretFile(home string) string { return filepath.Join(home, "config", "validator.seed") }

// ReadSecret reads the secret that all keys of the validator in a folder are derived from. It returns ErrNoSecret if
// the folder has none.
func ReadSecret(home string) (secret words.Secret, err error) {
	file := SecretFile(home)
	kept, err := keyfile.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return secret, fmt.Errorf("%w: %s", ErrNoSecret, home)
	case err != nil:
		return secret, fmt.Errorf("identity: %w", err)
	}
	secret, ok := words.ReadSecret(kept)
	if !ok {
		return secret, fmt.Errorf(
			"identity: %s holds no secret (%d bytes): restore it, or begin a new chain in another folder", file, len(kept))
	}
	return secret, nil
}

// RestoreSecret writes a secret to the folder of a validator and creates the folder if necessary. It returns
// ErrSecretExists if the folder has a secret.
func RestoreSecret(home string, secret words.Secret) error {
	file := SecretFile(home)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	switch err := keyfile.Write(file, secret.Kept()); {
	case errors.Is(err, keyfile.ErrExists):
		return fmt.Errorf("%w: %s", ErrSecretExists, home)
	case err != nil:
		return fmt.Errorf("identity: %w", err)
	}
	return nil
}

// MakeKeys returns the keys of the validator in a folder, and makes a secret if the folder has none.
func MakeKeys(home string) (Keys, error) {
	secret, err := ReadSecret(home)
	if errors.Is(err, ErrNoSecret) {
		_, _ = rand.Read(secret.Bytes[:]) // never fails
		err = RestoreSecret(home, secret)
	}
	return KeysOf(secret), err
}
