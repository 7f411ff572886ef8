package training

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/runstore"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Genesis returns a state of the module in which runs from another chain continue. openings holds the openings of their
// work by the digest of the specification; without the opening, no dispute about a run can start.
func Genesis(openings map[canon.Digest][]byte, states ...run.State) (json.RawMessage, error) {
	type entry struct {
		Key   any `json:"key"`
		Value any `json:"value,omitempty"`
	}
	g := map[string][]entry{}
	add := func(collection string, key, value any) { g[collection] = append(g[collection], entry{key, value}) }
	held := map[canon.Digest]uint64{}
	for _, s := range states {
		if _, ok := openings[s.Terms.Spec]; ok {
			held[s.Terms.Spec]++
		}
		job := s.Terms.Job
		runstore.Genesis(s, add)
		if s.Phase != progress.Done && s.Phase != progress.Halted {
			add("active", job, nil)
		}
		add("issued", job, "0")
	}
	for _, spec := range slices.SortedFunc(maps.Keys(held),
		func(a, b canon.Digest) int { return bytes.Compare(a[:], b[:]) }) {
		add("openings", spec[:], openings[spec])
		add("held", spec[:], strconv.FormatUint(held[spec], 10))
	}
	return json.Marshal(g)
}
