package owner

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/folder"
)

// Files of the home of an owner.
const (
	FileKey    = "key" // Ed25519 seed, in hexadecimal
	fileLedger = "ledger.json"
)

// Home is the folder of an owner: its key, and what its data were used for. One process uses it at a time.
type Home struct {
	dir    string
	Key    ed25519.PrivateKey
	Ledger Ledger
	unlock func() error
}

// Ledger lists the jobs that data were used for.
type Ledger struct {
	Jobs []*Use `json:"jobs"`
}

// Use is what one job has used.
type Use struct {
	Job  string `json:"job"` // digest
	Name string `json:"name"`
	federated.Spent
	Last int64 `json:"last"` // round in which the last vector was sent; -1: none
}

// ErrBudget is returned where a job would exceed the budget of an owner.
var ErrBudget = errors.New("the job would exceed the budget")

// OpenHome opens a home, or makes one with a new key.
func OpenHome(dir string) (h *Home, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	h = &Home{dir: dir}
	if h.unlock, err = folder.Lock(dir); err != nil {
		return nil, err
	}
	if err := h.read(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Close unlocks the home.
func (h *Home) Close() error { return h.unlock() }

func (h *Home) read() error {
	path := filepath.Join(h.dir, FileKey)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		seed := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // never fails
		text = []byte(hex.EncodeToString(seed) + "\n")
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return fmt.Errorf("%s holds no key", path)
	}
	h.Key = ed25519.NewKeyFromSeed(seed)
	err = folder.ReadJSON(filepath.Join(h.dir, fileLedger), &h.Ledger)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Name is the public key of the owner, in hexadecimal.
func (h *Home) Name() string { return hex.EncodeToString(h.Key.Public().(ed25519.PublicKey)) }

// use is the entry of a job, which is added if it is not there. If the owner has fewer examples now, an example is in a
// step with a higher rate, which counts for the rounds before, too.
func (h *Home) use(job, name string, as federated.Spent) *Use {
	for _, u := range h.Ledger.Jobs {
		if u.Job == job {
			u.Rate = max(u.Rate, as.Rate)
			return u
		}
	}
	as.Rounds = 0
	u := &Use{Job: job, Name: name, Spent: as, Last: -1}
	h.Ledger.Jobs = append(h.Ledger.Jobs, u)
	return u
}

// A Budget is the largest epsilon of all jobs together.
type Budget struct {
	Unit    federated.Unit
	Epsilon float64 // 0: none
	Delta   float64
}

// projected is the epsilon of all jobs, if one of them uses all of its rounds.
func (h *Home) projected(b Budget, of *Use, rounds uint32) float64 {
	whole := of.Spent
	whole.Rounds = rounds
	uses := []federated.Spent{whole}
	for _, u := range h.Ledger.Jobs {
		if u != of {
			uses = append(uses, u.Spent)
		}
	}
	return federated.Epsilon(b.Unit, b.Delta, uses...)
}

// Spent is the epsilon of a unit at a delta of all jobs so far. It is infinite if one of them had no noise for it.
func (h *Home) Spent(of federated.Unit, delta float64) float64 {
	var uses []federated.Spent
	for _, u := range h.Ledger.Jobs {
		uses = append(uses, u.Spent)
	}
	return federated.Epsilon(of, delta, uses...)
}

// Bounds are Spent of an owner and of an example; nil: it is infinite.
func (h *Home) Bounds(delta float64) (owner, example *float64) {
	bound := func(of federated.Unit) *float64 {
		e := h.Spent(of, delta)
		if math.IsInf(e, 1) {
			return nil
		}
		return &e
	}
	return bound(federated.OfOwner), bound(federated.OfExample)
}

// allow refuses a job that would exceed a budget.
func (h *Home) allow(of *Use, rounds uint32, b Budget) error {
	if b.Epsilon == 0 {
		return nil
	}
	if e := h.projected(b, of, rounds); e > b.Epsilon {
		why := fmt.Sprintf("with the jobs before, its %d rounds would bring epsilon of an %s to %.3f at delta %g", rounds,
			b.Unit, e, b.Delta)
		if math.IsInf(e, 1) {
			why = fmt.Sprintf("it, or a job before, has no noise for an %s", b.Unit)
		}
		return fmt.Errorf("%w: %s, and the budget is %g", ErrBudget, why, b.Epsilon)
	}
	return nil
}

// sends records that a vector is sent in a round, before it is.
func (h *Home) sends(u *Use, round uint32) error {
	if int64(round) <= u.Last {
		return fmt.Errorf("round %d of the job had a vector of this owner before", round)
	}
	u.Last, u.Rounds = int64(round), u.Rounds+1
	return folder.WriteJSON(filepath.Join(h.dir, fileLedger), h.Ledger)
}
