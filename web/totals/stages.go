package totals

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/source"
)

// Stages are those of a run whose model is cut, with the bytes that were exchanged in the steps so far, and the members
// that were paid for their units; nil: it is not cut.
func Stages(h *source.History) []api.Stage {
	if h.Pipeline == nil || len(h.Pipeline.Stages) == 0 {
		return nil
	}
	list := slices.Clone(h.Pipeline.Stages)
	steps := uint64(max(0, h.Job.Step)) * uint64(max(0, h.Pipeline.Replicas))
	held := make([]map[string]int, len(list))
	for s := range list {
		held[s] = map[string]int{}
		list[s].SentBytes *= steps
		list[s].ReceivedBytes *= steps
	}
	for _, x := range h.Receipts {
		if x.Kind == "work" && x.Amount > 0 {
			held[int(x.Unit%uint32(len(list)))][x.Who]++
		}
	}
	for s := range list {
		list[s].Holders = []api.Holder{}
		for id, units := range held[s] {
			list[s].Holders = append(list[s].Holders, api.Holder{ID: id, Units: units})
		}
		slices.SortFunc(list[s].Holders, func(a, b api.Holder) int {
			return cmp.Or(b.Units-a.Units, cmp.Compare(a.ID, b.ID))
		})
	}
	return list
}
