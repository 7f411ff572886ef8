// Package folder writes and reads files of a folder that outlive the process: each is replaced as a whole. It keeps a
// second process out of a folder, too. It knows no name and no content of a file.
package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	part := path + ".part"
	f, err := os.Create(part)
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
