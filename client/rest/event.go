package rest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/api"
)

// Event is something that happened to a run.
type Event struct {
	Round  int   `json:"round"`            // 0: before the first
	Height int64 `json:"height,omitempty"` // of the block, where it is known
	// attested, challenged, verdict, slash, bounty, refund, or the state of the run
	Kind string `json:"kind"`
	Who  string `json:"who,omitempty"`
	Text string `json:"text"`
}

// Events are the events of a run, in order of rounds: its checkpoints, its disputes, slashes and returned deposits,
// and its current state.
func (c *Client) Events(ctx context.Context, id string) ([]Event, error) {
	j, err := c.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	lineage, err := c.Lineage(ctx, id)
	if err != nil {
		return nil, err
	}
	disputes, err := c.Disputes(ctx, id)
	if err != nil {
		return nil, err
	}
	receipts, err := c.Receipts(ctx, id, "", "", false)
	if err != nil {
		return nil, err
	}
	return events(j, lineage, receipts, disputes), nil
}

func events(j api.Job, lineage []api.Checkpoint, receipts []api.Receipt, disputes []api.Dispute) []Event {
	all := []Event{}
	for _, p := range lineage {
		all = append(all, Event{Round: p.Round, Kind: "attested",
			Text: fmt.Sprintf("%d members signed the checkpoint with the state root %.12s", len(p.Signers), p.StateRoot)})
	}
	for _, d := range disputes {
		begun := d.Height
		if len(d.Log) > 0 {
			begun = d.Log[0].Height
		}
		all = append(all, Event{Round: d.Round, Height: begun, Kind: "challenged", Who: d.Challenger,
			Text: fmt.Sprintf("says that unit %d of %s is wrong", d.Unit, d.Worker)})
		if d.Verdict != "open" {
			all = append(all, Event{Round: d.Round, Height: d.Height, Kind: "verdict", Who: d.Worker,
				Text: fmt.Sprintf("%s, after %d moves", strings.ReplaceAll(d.Verdict, "_", " "), d.Moves)})
		}
	}
	for _, r := range receipts {
		if r.Kind == "slash" || r.Kind == "bounty" || r.Kind == "refund" {
			all = append(all, Event{Round: r.Round, Height: r.Height, Kind: r.Kind, Who: r.Who, Text: r.Explanation})
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round),
			cmp.Compare(a.Height, b.Height))
	})
	last := Event{Round: j.Round, Kind: j.State, Text: fmt.Sprintf("%d of %d rounds are attested", j.Round, j.Rounds)}
	if j.Reason != nil {
		last.Text = j.Reason.Text
	}
	return append(all, last)
}
