package arena

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/hidden"
)

// Tokens says how a text becomes a hidden set: windows of tokens.
type Tokens struct {
	Encode   func(text string) []uint32
	Vocab    int
	Window   int // tokens of an example
	Examples int // at most
}

// MakeSet makes the hidden set of a text in a folder, or reads the one that an earlier call made of the same text.
// Where the text has more windows than examples are wanted, those are taken that divide it evenly.
func MakeSet(dir, text string, t Tokens) (hidden.Set, error) {
	name := canon.Sum("starling/arena-text/1", []byte(text), binary.BigEndian.AppendUint64(nil, uint64(t.Window)),
		binary.BigEndian.AppendUint64(nil, uint64(t.Examples)))
	path := filepath.Join(dir, name.Short()+".set")
	raw, err := os.ReadFile(path)
	if err == nil {
		s, err := hidden.Decode(raw)
		return s, onDisk(err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return hidden.Set{}, onDisk(err)
	}
	s, err := t.set(t.Encode(text))
	if err != nil {
		return s, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, onDisk(err)
	}
	return s, onDisk(folder.WriteFile(path, s.Encode()))
}

// set makes a hidden set of tokens.
func (t Tokens) set(ids []uint32) (hidden.Set, error) {
	windows := len(ids) / t.Window
	n := min(windows, t.Examples)
	examples := make([][]uint32, n)
	for i := range examples {
		examples[i] = ids[i*windows/n*t.Window:][:t.Window]
	}
	s, err := hidden.New(draw(), uint32(t.Vocab), examples)
	if err != nil {
		err = &Error{Code: BadText, What: fmt.Sprintf("no hidden set can be made from %d tokens in windows of %d",
			len(ids), t.Window), Err: err, Fix: fmt.Sprintf("give a longer text or smaller windows: at least %d examples "+
			"are wanted", arena.MinExamples)}
	}
	return s, err
}

// MakeSets makes the hidden sets of rounds, of windows of a text that are in one set each.
func MakeSets(text string, t Tokens, rounds int) ([]hidden.Set, error) {
	ids := t.Encode(text)
	sets := make([]hidden.Set, rounds)
	for r := range sets {
		var own []uint32
		for at := r; (at+1)*t.Window <= len(ids); at += rounds {
			own = append(own, ids[at*t.Window:][:t.Window]...)
		}
		var err error
		if sets[r], err = t.set(own); err != nil {
			return nil, fmt.Errorf("round %d of %d: %w", r+1, rounds, err)
		}
	}
	return sets, nil
}

// SetOf is the path of the hidden set in a folder that has a root; "": there is none.
func SetOf(dir string, root canon.Digest) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.set"))
	if err != nil {
		return "", onDisk(err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return "", onDisk(err)
		}
		if s, err := hidden.Decode(raw); err == nil && s.Root() == root {
			return path, nil
		}
	}
	return "", nil
}

// ServeSet adds a hidden set to a server.
func ServeSet(mux *http.ServeMux, path string) { ServeFile(mux, "/"+files.NameSet, path) }

// ListBase lists the files of a base in its own folder, where they are published, and returns its digest.
func ListBase(dir string) (canon.Digest, error) {
	list, err := findModel(dir, nil)
	if err != nil {
		return canon.Digest{}, err
	}
	return list.Digest(), onDisk(folder.WriteFile(filepath.Join(dir, files.NameList), list.Encode()))
}
