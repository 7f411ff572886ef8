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
