// Package folder writes and reads files of a folder that outlive the process: each is replaced as a whole. It keeps a
// second process out of a folder, too. It knows no name and no content of a file.
package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// WriteFile replaces a file as a whole, and makes its folder: after a crash it is either the old or the new one.
func WriteFile(path string, b []byte) error {
	return WriteFileBy(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// WriteFileBy is WriteFile with a function that writes the bytes. Until all are there, they lie in the folder of the
// file under another name.
func WriteFileBy(path string, write func(w io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return replace(path, os.O_TRUNC, 0o666, write)
}

// replace writes the bytes of a file under another name, which it opens with a flag, and then gives the file its name.
func replace(path string, flag int, mode fs.FileMode, write func(w io.Writer) error) error {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR|flag, mode)
	if err != nil {
		return err
	}
	err = write(f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// WriteJSON is WriteFile with a value as JSON, indented.
func WriteJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(b, '\n'))
}

// WriteSecretJSON is WriteSecret with a value as JSON, indented.
func WriteSecretJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return WriteSecret(path, append(b, '\n'))
}

// WriteSecret is WriteFile for a file that only its owner may read, in a folder that is there. When it returns, the
// file survives a power failure where the system can sync folders.
func WriteSecret(path string, b []byte) error {
	if err := os.Remove(path + ".part"); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a call that was cut off
		return err
	}
	if err := replace(path, os.O_EXCL, 0o600, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}); err != nil {
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync() // some systems cannot
		_ = d.Close()
	}
	return nil
}

// ReadJSON reads the JSON of a file into v.
func ReadJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// OpenLog opens a log of everything worth a line, to be added to. The caller closes the file.
func OpenLog(path string) (*slog.Logger, *os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug})), f, nil
}
