// Package committee has the parties of a committee, by the rules of protocol/committee: a host that publishes the model
// of each round and, once members have entered theirs, the set that they are scored on; and members, which train the
// model on data of their own and publish the result. The evaluators are those of node/arena: a round is a contest.
// Both keep their state in a folder, and continue after a restart.
//
// Updates are public models: the package hides nothing but the data themselves (docs/federated.md).
package committee

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/node/coded"
	"github.com/starling-network/starling/protocol/committee"
)

// Codes of errors. They are stable.
const (
	BadJob  = "COMMITTEE_JOB"  // the job has no public updates, or is another than that of the committee
	BadText = "COMMITTEE_TEXT" // the text gives too few examples for a set in each round
	Disk    = "COMMITTEE_DISK" // a file of this machine cannot be read or written
)

// Error says why a step of a committee failed.
type Error = coded.Error

func onDisk(err error) error { return coded.OnDisk(err, Disk, "a file of the committee") }

// Rounds reads committees, and the contests that are their rounds.
type Rounds interface {
	Committee(ctx context.Context, id uint64) (module.Assembly, error)
	Contest(ctx context.Context, id uint64) (module.Standing, error)
}

// Hosting is the part of a network that a host needs.
type Hosting interface {
	Rounds
	Convene(ctx context.Context, t committee.Terms) (uint64, error)
	Begin(ctx context.Context, id uint64, model canon.Digest, url string, set canon.Digest) error
	RevealSet(ctx context.Context, contest uint64, url string) error
}

// Membership is the part of a network that a member needs.
type Membership interface {
	Rounds
	Join(ctx context.Context, id, stake uint64) (uint64, error)
	Leave(ctx context.Context, id uint64) (uint64, error)
	Enter(ctx context.Context, contest uint64, commitment canon.Digest) (uint32, error)
	RevealEntry(ctx context.Context, contest uint64, entry uint32, model, salt canon.Digest, url string) error
}

// patience is how long the files of a model may take.
const patience = 10 * time.Minute

// shelf serves the files of rounds: those of the round n are in the folder n.
type shelf struct {
	dir  string
	all  bool // files of all rounds are served
	mu   sync.Mutex
	open map[uint64]bool // rounds whose files are served
}

func newShelf(dir string, all bool) *shelf {
	return &shelf{dir: dir, all: all, open: map[uint64]bool{}}
}

// at is the folder of a round.
func (s *shelf) at(n uint64) string { return filepath.Join(s.dir, strconv.FormatUint(n, 10)) }

// publish serves the files of a round from now on.
func (s *shelf) publish(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[n] = true
}

// shows reports whether the files of a round are served.
func (s *shelf) shows(n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all || s.open[n]
}

// ServeHTTP serves the address /rounds/N/FILE.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseUint(r.PathValue("round"), 10, 64)
	name := r.PathValue("file")
	if err != nil || !filepath.IsLocal(name) || filepath.Base(name) != name || !s.shows(n) {
		http.NotFound(w, r)
		return
	}
	f, err := os.Open(filepath.Join(s.at(n), name))
	if errors.Is(err, os.ErrNotExist) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, "the file cannot be read", http.StatusInternalServerError)
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// pattern of the addresses of a shelf.
const pattern = "GET /rounds/{round}/{file}"
