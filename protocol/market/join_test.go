package market

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
)

func TestJoin(t *testing.T) {
	running := func() run.State {
		s, err := run.New(order().Terms, []crew.Member{
			{ID: "v9", Role: crew.Verifier, Price: 600}, {ID: "w8", Role: crew.Worker, Price: 100},
			{ID: "w9", Role: crew.Worker, Price: 100},
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, c := range map[string]struct {
		spoil     func(*Order, *run.State)
		back      []crew.Member
		remaining uint64
		want      string
	}{
		"up to the most workers": {remaining: 1 << 40, want: "w1:1:900 w5:1:900 "},
		"no place":               {spoil: func(o *Order, _ *run.State) { o.Workers.Max = 2 }, remaining: 1 << 40},
		"one who left": {spoil: func(_ *Order, s *run.State) { s.Members[0].Active = false },
			remaining: 1 << 40, want: "v1:2:700 w1:1:900 w5:1:900 "},
		"the place of a member in probation": {spoil: func(_ *Order, s *run.State) {
			s.Members[0].Active,
				s.Members[0].Why = false, reason.OnProbation
		}, remaining: 1 << 40, want: "w1:1:900 w5:1:900 "},
		"above the cap":    {spoil: func(o *Order, _ *run.State) { o.PriceCap = 99 }, remaining: 1 << 40},
		"nothing to train": {spoil: func(_ *Order, s *run.State) { s.Phase = progress.Settle }, remaining: 1 << 40},
		"budget for the price they ask": {spoil: func(o *Order, _ *run.State) { o.Workers.Max = 8 },
			remaining: 4 * (300 + 600), want: "w1:1:300 w2:1:300 w3:1:300 "},
		"no budget": {remaining: 4*(100+600) - 1},
		"who is back comes first": {
			spoil: func(o *Order, s *run.State) {
				s.Members[1].Active, s.Members[1].Why = false, reason.Returning
				o.Workers.Max = 2
			},
			back: []crew.Member{{ID: "w8", Role: crew.Worker, Price: 100}}, remaining: 1 << 40, want: "w8:1:100 ",
		},
		"who is convicted is not back": {
			spoil: func(o *Order, s *run.State) {
				s.Members[1].Active, s.Members[1].Why = false, reason.Verdict
				o.Workers.Max = 2
			},
			back: []crew.Member{{ID: "w8", Role: crew.Worker, Price: 100}}, remaining: 1 << 40, want: "w1:1:300 ",
		},
	} {
		o, s := order(), running()
		if c.spoil != nil {
			c.spoil(&o, &s)
		}
		got := ids(Lease{Members: book(offers(), canon.Sum("beacon")).Join(o, s, c.back, c.remaining)})
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if _, _, err := s.Join(transition.Env{Height: 9},
			book(offers(), canon.Sum("beacon")).Join(o, s, c.back, c.remaining)); err != nil {
			t.Errorf("%s: the run takes them not: %v", name, err)
		}
	}
}

// An account that offers both roles joins once.
func TestJoinTakesAnAccountOnce(t *testing.T) {
	o := order()
	s, err := run.New(o.Terms, []crew.Member{{ID: "w9", Role: crew.Worker}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	both := []Offer{{ID: "x", Role: crew.Worker, Slots: 1}, {ID: "x", Role: crew.Verifier, Slots: 1}}
	for i := range 10 {
		if got := book(both, canon.Sum("beacon", []byte(fmt.Sprint(i)))).Join(o, s, nil, 1<<40); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	}
}
