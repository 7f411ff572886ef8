package keyfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A key that is encrypted can be read with its passphrase alone, its bytes are nowhere on the disk, and it can be
// changed and decrypted again.
func TestKeyAtRest(t *testing.T) {
	t.Cleanup(func() { Ask(nil) })
	dir := t.TempDir()
	path, secret := filepath.Join(dir, "key"), bytes.Repeat([]byte("secret!!"), 4)
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := Write(path, secret); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte{1}); !errors.Is(err, ErrExists) {
		t.Errorf("written twice: %v", err)
	}
	with := func(passphrase string) { Ask(func(string) (string, error) { return passphrase, nil }) }
	if err := Change(path, "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); !errors.Is(err, ErrLocked) {
		t.Errorf("without a passphrase: %v", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	data, err := os.ReadFile(path)
	info, e := os.Stat(path)
	if err != nil || e != nil || bytes.Contains(data, secret[:8]) || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v, %v", data, info.Mode(), err, e)
	}
	with("second")
	if _, err := Read(path); !errors.Is(err, ErrPassphrase) {
		t.Errorf("with another passphrase: %v", err)
	}
	if err := Change(path, ""); !errors.Is(err, ErrPassphrase) {
		t.Errorf("changed without its passphrase: %v", err)
	}
	with("first")
	if err := Change(path, "second"); err != nil {
		t.Fatal(err)
	}
	with("second")
	if got, err := Read(path); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("%x, %v", got, err)
	}
	if yes, err := Encrypted(path); err != nil || !yes {
		t.Errorf("%v, %v", yes, err)
	}
	if err := Change(path, ""); err != nil {
		t.Fatal(err)
	}
	Ask(nil)
	if got, err := Read(path); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("decrypted: %x, %v", got, err)
	}
	if err := os.WriteFile(path, data[:len(magic)], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); !errors.Is(err, ErrForm) {
		t.Errorf("cut off: %v", err)
	}
}
