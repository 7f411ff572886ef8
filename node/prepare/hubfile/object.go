package hubfile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Object is a file of JSON of others: what is not asked for stays as it is.
type Object map[string]json.RawMessage

// Set gives a key a value, unless it has one.
func (o Object) Set(key string, value json.RawMessage) {
	if old, ok := o[key]; (!ok || string(old) == "null") && len(value) > 0 && string(value) != "null" {
		o[key] = value
	}
}

// Bytes are the file.
func (o Object) Bytes() []byte {
	raw, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // its values were parsed
	}
	return append(raw, '\n')
}

// Read reads a file of JSON in a folder; none if it is not there.
func Read(dir, name string) (Object, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return Object{}, nil
	}
	if err != nil {
		return nil, err
	}
	o := Object{}
	return o, json.Unmarshal(raw, &o)
}

// Number is a number as JSON writes it.
func Number(n int) json.RawMessage {
	raw, _ := json.Marshal(n) // it always is one
	return raw
}
