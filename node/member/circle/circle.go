// Package circle lets accomplices of several processes tell each other what they made up, in tests of networks.
package circle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/canon"
)

// Folder is a folder with a file for each lie. It implements adversary.Circle.
type Folder string

func (c Folder) file(lie canon.Digest) string { return filepath.Join(string(c), lie.String()) }

// Tell implements adversary.Circle.
func (c Folder) Tell(lie canon.Digest) error {
	return errors.Join(os.MkdirAll(string(c), 0o700), os.WriteFile(c.file(lie), nil, 0o600))
}

// Told implements adversary.Circle.
func (c Folder) Told(lie canon.Digest) (bool, error) {
	_, err := os.Stat(c.file(lie))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
