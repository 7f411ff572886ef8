package training

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
)

// Genesis is the state of the module in which runs go on that began elsewhere, with the openings of their work by specification: without
// one no dispute about a run can begin.
func Genesis(openings map[canon.Digest][]byte, states ...run.State) (json.RawMessage, error) {
	type entry struct {
		Key   any `json:"key"`
		Value any `json:"value,omitempty"`
	}
	g := map[string][]entry{}
	add := func(collection string, key, value any) { g[collection] = append(g[collection], entry{key, value}) }
	// Numbers in keys are text.
	pair := func(job string, i int) any { return []string{job, strconv.Itoa(i)} }
	held := map[canon.Digest]uint64{}
	for _, s := range states {
		if _, ok := openings[s.Terms.Spec]; ok {
			held[s.Terms.Spec]++
		}
		job, h := s.Terms.Job, head{State: s}
		h.State.Open = append([]run.Lap(nil), s.Open...)
		for _, lap := range laps(&h.State) {
			for i, u := range lap.Units {
				add("units", []string{job, strconv.FormatUint(uint64(lap.Round), 10), strconv.Itoa(i)}, u)
			}
			h.Counts = append(h.Counts, uint32(len(lap.Units)))
			lap.Units = nil
		}
		for i, m := range s.Members {
			add("members", pair(job, i), m)
		}
		for i, v := range s.Votes {
			add("votes", pair(job, i), v)
		}
		for i, slice := range s.Slices {
			add("slices", pair(job, i), slice)
		}
		h.Counts = append(h.Counts, uint32(len(s.Members)), uint32(len(s.Votes)), uint32(len(s.Slices)))
		h.State.Members, h.State.Votes, h.State.Slices = nil, nil, nil
		add("runs", job, h)
		if s.Phase != run.Done && s.Phase != run.Halted {
			add("active", job, nil)
		}
		add("issued", job, "0")
	}
	for _, spec := range slices.SortedFunc(maps.Keys(held), func(a, b canon.Digest) int { return bytes.Compare(a[:], b[:]) }) {
		add("openings", spec[:], openings[spec])
		add("held", spec[:], strconv.FormatUint(held[spec], 10))
	}
	return json.Marshal(g)
}
