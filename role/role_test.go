package role

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/work"
)

// A failed action rests, also if it was asked for before a restart: the zero value has nothing under way.
func TestPending(t *testing.T) {
	train := Train{Work: work.UnitID{Round: 1}}
	var p Pending
	p.Rest(train, 10)
	if got := p.Want(12, train); len(got) != 0 {
		t.Errorf("it is asked for while it rests: %v", got)
	}
	if got := p.Want(13, train); len(got) != 1 {
		t.Errorf("it is not asked for again: %v", got)
	}
	if got := p.Want(13, train); len(got) != 0 {
		t.Errorf("it is asked for twice: %v", got)
	}
	p.Settle(train, 13)
	if got := p.Want(13, train); len(got) != 0 {
		t.Errorf("it is asked for again before a block shows what it did: %v", got)
	}
	if got := p.Want(14, train); len(got) != 1 {
		t.Errorf("it is not asked for again: %v", got)
	}
	p.Done(train)
	if got := p.Want(13, train); len(got) != 1 {
		t.Errorf("it is not asked for after it ended: %v", got)
	}
}

// Actions of rounds that are over are forgotten: a run has any number of rounds.
func TestPendingForgets(t *testing.T) {
	var p Pending
	const rounds = 100
	for round := range uint32(rounds) {
		train, check := Train{Work: work.UnitID{Round: round}}, Check{Work: work.UnitID{Round: round}}
		height := int64(round) * 10
		if got := p.Want(height, train, check); len(got) != 2 {
			t.Fatalf("round %d: %v", round, got)
		}
		p.Settle(train, height)
		p.Rest(check, height)
	}
	if len(p.until) > 2 || len(p.under) != 0 {
		t.Errorf("after %d rounds, %d actions rest and %d are under way", rounds, len(p.until), len(p.under))
	}
}
