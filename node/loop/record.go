package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/web/tinker"
)

// Folder is where an account keeps its loops: the run loop-X in the folder loop-X, and in M.json the name of the run of
// the model M. The folder of a run has its record in loop.json, metrics.jsonl, and its blobs. The record stays when the
// run is over, as what it cost counts against the limit of its token, and the blobs of the latest runs stay, so that
// these can be verified.
func Folder(a *account.Account) string { return filepath.Join(a.Home.Dir, "loops") }

const (
	modelSuffix = ".json"
	runPrefix   = "loop-"
	recordFile  = "loop.json"
	blobFolder  = rundir.DirBlobs
)

// record is what the folder of an account keeps of a run.
type record struct {
	Order  string  `json:"order"`
	Token  string  `json:"token,omitempty"`      // digest of the token that pays
	Budget uint64  `json:"budget_uzen"`          // of the order
	Spent  *uint64 `json:"spent_uzen,omitempty"` // of it, once that is known for good

	order.Shape
	Adam     optimizer.AdamW  `json:"adam"`
	Numerics uint32           `json:"numerics"`
	Program  canon.Digest     `json:"program"`
	Frozen   canon.Digest     `json:"frozen"` // root of the weights that no step changes
	First    uint32           `json:"first"`  // steps of the model before the run
	Genesis  terms.Checkpoint `json:"genesis"`
	Last     terms.Checkpoint `json:"last"` // the model has the weights after it; before the first step, the genesis
	Fed      []feed           `json:"fed,omitempty"`
	Over     bool             `json:"over,omitempty"` // no step of it is taken any more
}

// feed is the data of a round as the run names them.
type feed struct {
	Root  canon.Digest `json:"root"`
	CID   string       `json:"cid"`
	After string       `json:"after,omitempty"` // CID of the checkpoint after the round; "": not loaded
	By    string       `json:"by,omitempty"`    // identifier of the request for the step
}

// kept is what the folder of an account keeps of a model.
type kept struct {
	Order     string       `json:"order,omitempty"`  // its latest run; "": none
	Loaded    *tinker.Path `json:"loaded,omitempty"` // weights that it got after that; nil: none
	Optimizer bool         `json:"optimizer,omitempty"`
}

// Named is what the record of a run tells of it to those who execute it again.
type Named struct {
	Order   string
	Genesis terms.Checkpoint
	Data    []string // CIDs of the data of each round
}

// Recorded reports whether a folder is one of a run that a client leads.
func Recorded(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, recordFile))
	return err == nil && info.Mode().IsRegular()
}

// ReadNamed reads the record in the folder of a run.
func ReadNamed(dir string) (n Named, err error) {
	var r record
	if err := folder.ReadJSON(filepath.Join(dir, recordFile), &r); err != nil {
		return n, err
	}
	n.Order, n.Genesis = r.Order, r.Genesis
	for _, f := range r.Fed {
		n.Data = append(n.Data, f.CID)
	}
	return n, nil
}

// shelf is the folder of an account with its loops, and the sessions whose blobs are served from it.
type shelf struct {
	dir     string
	account *account.Account
	options Options

	mu   sync.Mutex
	held map[string]*Session // by their orders
}

// modelFile is where the run of a model is named.
func (h *shelf) modelFile(name string) string { return filepath.Join(h.dir, name+modelSuffix) }

// write names the run of a model.
func (h *shelf) write(name string, k kept) error { return folder.WriteJSON(h.modelFile(name), k) }

// session is that of an order, or nil.
func (h *shelf) session(order string) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[order]
}

// save writes the record of a session.
func (s *Session) save() error { return folder.WriteJSON(filepath.Join(s.dir, recordFile), s.record) }

// read reads the records of the folder, the latest first, and the runs that models have.
func (h *shelf) read() (all []record, named map[string]bool, err error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	named, times := map[string]bool{}, map[string]time.Time{}
	for _, f := range entries {
		path := filepath.Join(h.dir, f.Name())
		if strings.HasSuffix(path, modelSuffix) {
			var k kept
			if err := folder.ReadJSON(path, &k); err != nil {
				return nil, nil, err
			}
			named[k.Order] = true
			continue
		}
		file := filepath.Join(path, recordFile)
		info, err := os.Stat(file)
		if !strings.HasPrefix(f.Name(), runPrefix) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		var r record
		if err = errors.Join(err, folder.ReadJSON(file, &r)); err != nil {
			return nil, nil, err
		}
		if r.Order != f.Name() {
			return nil, nil, fmt.Errorf("loop: %s is the record of %q", file, r.Order)
		}
		all, times[r.Order] = append(all, r), info.ModTime()
	}
	slices.SortFunc(all, func(a, b record) int {
		return cmp.Or(times[b.Order].Compare(times[a.Order]), cmp.Compare(a.Order, b.Order))
	})
	return all, named, nil
}

// restore counts what the runs of the folder cost, serves the blobs of those that have any, and ends those of no model:
// a process ended before they did.
func (h *shelf) restore(ctx context.Context) error {
	all, named, err := h.read()
	if err != nil {
		return err
	}
	for _, r := range all {
		h.options.Ledger.Note(r.Token, r.Order, r.Budget, r.Spent)
		if _, err := os.Stat(filepath.Join(h.dir, r.Order, blobFolder)); err != nil && r.Spent != nil {
			continue // its blobs are deleted
		}
		s, err := reopen(h.account, r, h.options)
		if err != nil {
			return err
		}
		h.hold(s)
		if r.Spent == nil && (r.Over || !named[r.Order]) {
			s.End(ctx)
		}
	}
	h.trim()
	return nil
}

// hold has the blobs of a session served until trim deletes them.
func (h *shelf) hold(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.ended = h.trim
	h.held[s.ID] = s
}

// room reports why the data of another step have no room.
func (h *shelf) room(step order.Shape) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := step.Bytes()
	for _, s := range h.held {
		sum += int64(len(s.record.Fed)) * s.record.Bytes()
	}
	if sum <= h.options.Data {
		return nil
	}
	return order.DataFull(h.dir, h.options.Data)
}

// trim deletes the blobs of runs that are over and of no model, but for the latest ones.
func (h *shelf) trim() {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, named, err := h.read()
	left := h.options.Kept
	for _, r := range all {
		s := h.held[r.Order]
		if s == nil || r.Spent == nil || named[r.Order] {
			continue
		}
		if left--; left >= 0 {
			continue
		}
		s.detach()
		delete(h.held, r.Order)
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, blobFolder)))
	}
	if err != nil {
		h.options.Log.Warn("blobs of runs stay on the disk", "folder", h.dir, "err", err)
	}
}

// settled reports what the order of a session cost, once it is over for good.
func (s *Session) settled(ctx context.Context) (spent uint64, over bool) {
	state, err := s.chain.Training.Run(ctx, s.ID)
	if err == nil && !state.Over() || err != nil && !errors.Is(err, client.ErrNotFound) {
		return 0, false
	}
	e, err := s.chain.Market.Escrow(ctx, s.ID)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return 0, true // it was never ordered
	case err != nil || e.Remaining() > 0:
		return 0, false
	}
	return e.Budget - e.Refunded, true
}
