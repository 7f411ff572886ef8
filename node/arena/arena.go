// Package arena has the parties of a contest of models, by the rules of protocol/arena: a host that publishes a
// hidden set, entrants that publish their models, and evaluators that download both, compute the exact losses, find
// copies and report. All keep their state in a folder, and continue after a restart.
//
// The package knows no chain: an interface of a few methods reads and writes contests.
package arena

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/node/coded"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/arena"
)

// Codes of errors. They are stable.
const (
	BadFolder   = "ARENA_FOLDER"    // the folder is of no model that can enter
	HasCode     = "ARENA_CODE"      // the folder has code
	Changed     = "ARENA_CHANGED"   // the files are no longer those that were entered
	Unknown     = "ARENA_UNKNOWN"   // the account has no part in the contest
	Disk        = "ARENA_DISK"      // a file of this machine cannot be read or written
	BadText     = "ARENA_TEXT"      // no hidden set can be made from the text
	OtherTokens = "ARENA_TOKENIZER" // the model has another tokenizer than the contest
)

// Error says why a step of a contest failed.
type Error = coded.Error

// onDisk gives an error of a file its code.
func onDisk(err error) error { return coded.OnDisk(err, Disk, "a file of the contest") }

// draw draws a digest that no other party can guess.
func draw() (d canon.Digest) {
	_, _ = rand.Read(d[:]) // it never fails
	return d
}

// entered is the file of an entry, which only its owner can read.
type entered struct {
	Folder string       `json:"folder"`
	Model  canon.Digest `json:"model"`
	Salt   canon.Digest `json:"salt"`
	Entry  uint32       `json:"entry,omitempty"` // its number; 0: not known yet
}

// Entrant is the side of an entrant: one entry in one contest. Its folder has the salt of the commitment.
type Entrant struct {
	path  string
	state entered
	list  files.List
}

// Prepare makes the entry of the model in a folder, or continues one of an earlier call with the same model.
func Prepare(dir, model string, progress func(done, total int64)) (*Entrant, error) {
	model, err := filepath.Abs(model)
	if err != nil {
		return nil, onDisk(err)
	}
	list, err := findModel(model, progress)
	if err != nil {
		return nil, err
	}
	e := &Entrant{path: filepath.Join(dir, list.Digest().Short()+".json"), list: list,
		state: entered{Folder: model, Model: list.Digest(), Salt: draw()}}
	err = folder.ReadJSON(e.path, &e.state)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return e, onDisk(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, onDisk(err)
	}
	return e, onDisk(folder.WriteSecretJSON(e.path, e.state))
}

// findModel lists the files of the model in a folder.
func findModel(dir string, progress func(done, total int64)) (files.List, error) {
	list, err := files.Find(dir, progress)
	switch {
	case errors.Is(err, files.ErrCode):
		return list, &Error{Code: HasCode, What: "a model with code cannot enter", Err: err,
			Fix: "remove the files with code, and convert weights to safetensors: evaluators execute nothing of an entry"}
	case errors.Is(err, files.ErrNone), errors.Is(err, files.ErrList), errors.Is(err, fs.ErrNotExist):
		return list, &Error{Code: BadFolder, What: "the folder is of no model that can enter", Err: err,
			Fix: "give a folder with config.json and safetensors, such as the output folder of a finished run"}
	}
	return list, onDisk(err)
}

// Entrants are the entries that Prepare made in a folder, of models whose files are as they were.
func Entrants(dir string) (all []*Entrant, _ error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, onDisk(err)
	}
	for _, path := range paths {
		e := &Entrant{path: path}
		if err := folder.ReadJSON(path, &e.state); err != nil {
			return nil, onDisk(err)
		}
		if e.list, err = files.Find(e.state.Folder, nil); err != nil || e.list.Digest() != e.state.Model {
			return nil, &Error{Code: Changed, What: "the files of " + e.state.Folder + " are not those that were entered",
				Err: err, Fix: "restore them; an entry that is not revealed loses its deposit"}
		}
		all = append(all, e)
	}
	return all, nil
}

// Model and Salt are what the commitment is about.
func (e *Entrant) Model() (model, salt canon.Digest) { return e.state.Model, e.state.Salt }

// Suits refuses a model with another tokenizer.json than the contest has: its numbers of tokens mean other texts. A
// folder without one is taken.
func (e *Entrant) Suits(t arena.Terms) error {
	raw, err := os.ReadFile(filepath.Join(e.state.Folder, "tokenizer.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if d := canon.Digest(sha256.Sum256(raw)); err == nil && d != t.Tokenizer {
		return &Error{Code: OtherTokens, What: fmt.Sprintf("tokenizer.json of the model has the digest %s, and that of the "+
			"contest %s", d.Short(), t.Tokenizer.Short()),
			Fix: "enter a model that was trained with the tokenizer of the contest"}
	}
	return onDisk(err)
}

// Bytes of the files of the model.
func (e *Entrant) Bytes() uint64 { return e.list.Bytes() }

// Entry is the number that Entered wrote; 0: none.
func (e *Entrant) Entry() uint32 { return e.state.Entry }

// Entered records the number of the entry.
func (e *Entrant) Entered(n uint32) error {
	e.state.Entry = n
	return onDisk(folder.WriteSecretJSON(e.path, e.state))
}

// Serve adds the files of the entry to a server, below a prefix such as /3/.
func (e *Entrant) Serve(mux *http.ServeMux, prefix string) {
	list := e.list.Encode()
	mux.HandleFunc("GET "+prefix+files.NameList, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(list)
	})
	for _, f := range e.list.Files {
		ServeFile(mux, prefix+f.Name, filepath.Join(e.state.Folder, f.Name))
	}
}

// ServeFile adds a file to a server, in ranges where asked for.
func ServeFile(mux *http.ServeMux, at, path string) {
	mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(path)
		if err != nil {
			http.Error(w, "the file cannot be read", http.StatusInternalServerError)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, f)
	})
}
