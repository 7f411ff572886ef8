// Package record reads what the folder of an account keeps of the loops that it leads: the record of each run, and for
// each model the name of its run. It asks no network.
package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/web/tinker"
)

// Names in the folder: M.json of the model M, and loop-X/loop.json of the run loop-X.
const (
	Suffix = ".json"
	Prefix = "loop-"
	File   = "loop.json"
)

// Record is what the folder of an account keeps of a run.
type Record struct {
	Order  string  `json:"order"`
	Token  string  `json:"token,omitempty"`      // digest of the token that pays
	Budget uint64  `json:"budget_uzen"`          // of the order
	Spent  *uint64 `json:"spent_uzen,omitempty"` // of it, once that is known for good
	Until  int64   `json:"until,omitempty"`      // height after which the order can come in no more

	order.Shape
	Adam     optimizer.AdamW  `json:"adam"`
	Numerics uint32           `json:"numerics"`
	Program  canon.Digest     `json:"program"`
	Frozen   canon.Digest     `json:"frozen"` // root of the weights that no step changes
	First    uint32           `json:"first"`  // steps of the model before the run
	Genesis  terms.Checkpoint `json:"genesis"`
	Last     terms.Checkpoint `json:"last"` // the model has the weights after it; before the first step, the genesis
	Fed      []Feed           `json:"fed,omitempty"`
	Over     bool             `json:"over,omitempty"` // no step of it is taken any more
}

// Feed is the data of a round as the run names them.
type Feed struct {
	Root  canon.Digest `json:"root"`
	CID   string       `json:"cid"`
	After string       `json:"after,omitempty"` // CID of the checkpoint after the round; "": not loaded
	By    string       `json:"by,omitempty"`    // identifier of the request for the step
}

// Model is what the folder of an account keeps of a model.
type Model struct {
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
	info, err := os.Stat(filepath.Join(dir, File))
	return err == nil && info.Mode().IsRegular()
}

// ReadNamed reads the record in the folder of a run.
func ReadNamed(dir string) (n Named, err error) {
	var r Record
	if err := folder.ReadJSON(filepath.Join(dir, File), &r); err != nil {
		return n, err
	}
	n.Order, n.Genesis = r.Order, r.Genesis
	for _, f := range r.Fed {
		n.Data = append(n.Data, f.CID)
	}
	return n, nil
}

// Read reads the records of a folder, the latest first, and the runs that models have.
func Read(dir string) (all []Record, named map[string]bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	named, times := map[string]bool{}, map[string]time.Time{}
	for _, f := range entries {
		path := filepath.Join(dir, f.Name())
		if strings.HasSuffix(path, Suffix) {
			var k Model
			if err := folder.ReadJSON(path, &k); err != nil {
				return nil, nil, err
			}
			named[k.Order] = true
			continue
		}
		file := filepath.Join(path, File)
		info, err := os.Stat(file)
		if !strings.HasPrefix(f.Name(), Prefix) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		var r Record
		if err = errors.Join(err, folder.ReadJSON(file, &r)); err != nil {
			return nil, nil, err
		}
		if r.Order != f.Name() {
			return nil, nil, fmt.Errorf("record: %s is the record of %q", file, r.Order)
		}
		all, times[r.Order] = append(all, r), info.ModTime()
	}
	slices.SortFunc(all, func(a, b Record) int {
		return cmp.Or(times[b.Order].Compare(times[a.Order]), cmp.Compare(a.Order, b.Order))
	})
	return all, named, nil
}
