package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/web/tinker"
)

// Folder is where an account keeps its loops: the blobs of the run loop-X in loop-X, what is known of the run in
// loop-X.json, and the run of the model M in M.json. The record of a run stays when the run is over, as what it cost
// counts against the limit of its token.
func Folder(a *account.Account) string { return filepath.Join(a.Home.Dir, "loops") }

const (
	recordSuffix = ".json"
	runPrefix    = "loop-"
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

// modelFile is where the run of a model is named.
func (e *Engine) modelFile(name string) string { return filepath.Join(e.dir, name+recordSuffix) }

// save writes the record of a session.
func (s *Session) save() error { return folder.WriteJSON(s.dir+recordSuffix, s.record) }

// restore counts what the runs of the folder cost, and ends those of no model: a process ended before they did.
func (e *Engine) restore() error {
	entries, err := os.ReadDir(e.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	named := map[string]bool{}
	var runs []record
	for _, f := range entries {
		path, name := filepath.Join(e.dir, f.Name()), strings.TrimSuffix(f.Name(), recordSuffix)
		if f.IsDir() || name == f.Name() {
			continue
		}
		if !strings.HasPrefix(name, runPrefix) {
			var k kept
			if err := folder.ReadJSON(path, &k); err != nil {
				return err
			}
			named[k.Order] = true
			continue
		}
		var r record
		if err := folder.ReadJSON(path, &r); err != nil {
			return err
		}
		if r.Order != name {
			return fmt.Errorf("loop: %s is the record of %q", path, r.Order)
		}
		e.options.Ledger.Note(r.Token, r.Order, r.Budget, r.Spent)
		runs = append(runs, r)
	}
	for _, r := range runs {
		switch {
		case r.Spent != nil && !named[r.Order]:
			if err := os.RemoveAll(filepath.Join(e.dir, r.Order)); err != nil {
				return err
			}
			continue
		case r.Spent != nil || named[r.Order] && !r.Over:
			continue
		}
		s, err := reopen(e.account, r, e.options)
		if err != nil {
			return err
		}
		if s.held = named[r.Order]; s.held {
			e.ending[r.Order] = s
		}
		s.End(e.ctx)
	}
	return nil
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
