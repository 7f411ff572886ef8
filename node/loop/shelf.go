package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/rundir"
)

// Folder is where an account keeps its loops: the run loop-X in the folder loop-X, and in M.json the name of the run of
// the model M. The folder of a run has its record in loop.json, metrics.jsonl, and its blobs. The record stays when the
// run is over, as what it cost counts against the limit of its token, and the blobs of the latest runs stay, so that
// these can be verified.
func Folder(a *account.Account) string { return filepath.Join(a.Home.Dir, "loops") }

const blobFolder = rundir.DirBlobs

// shelf is the folder of an account with its loops, and the sessions whose blobs are served from it.
type shelf struct {
	dir     string
	account *account.Account
	options Options

	mu   sync.Mutex
	held map[string]*Session // by their orders
}

// modelFile is where the run of a model is named.
func (h *shelf) modelFile(name string) string { return filepath.Join(h.dir, name+record.Suffix) }

// write names the run of a model.
func (h *shelf) write(name string, k record.Model) error {
	return folder.WriteJSON(h.modelFile(name), k)
}

// session is that of an order, or nil.
func (h *shelf) session(order string) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[order]
}

// save writes the record of a session.
func (s *Session) save() error { return folder.WriteJSON(filepath.Join(s.dir, record.File), s.record) }

// restore counts what the runs of the folder cost, serves the blobs of those that have any, and ends those of no model:
// a process ended before they did.
func (h *shelf) restore(ctx context.Context) error {
	all, named, err := record.Read(h.dir)
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
		sum += s.rounds.Load() * s.record.Bytes()
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
	all, named, err := record.Read(h.dir)
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
