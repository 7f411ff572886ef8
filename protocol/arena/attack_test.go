package arena

import (
	"errors"
	"slices"
	"testing"
)

// Terms by which a host would keep its prize, or take the bonds of evaluators, are refused.
func TestTermsOfAttackers(t *testing.T) {
	for name, change := range map[string]func(*Terms){
		// a host that serves its set to one of two evaluators, or to two of four, would have the prize back
		"two evaluators":  func(t *Terms) { t.Panel = 2 },
		"four evaluators": func(t *Terms) { t.Panel = 4 },
		// 2^44 millionths of a nat times 2^20 wrap around to 0: no model would have a place
		"a worst loss that wraps around": func(t *Terms) { t.Worst = 1 << 44 },
		"no time for the work": func(t *Terms) {
			t.Examples, t.Length, t.MaxBytes, t.Most = MaxExamples, MaxLength, MaxBytes, MaxEntries
		},
		// 2^36 scores of one example would take 256 GiB of each evaluator
		"scores that fill the memory": func(t *Terms) {
			t.Vocab, t.Length, t.Judging = MaxVocab, MaxLength, MaxBlocks
		},
		"a model of a tebibyte": func(t *Terms) { t.MaxBytes, t.Judging = 1<<40, MaxBlocks },
	} {
		c := terms()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := terms()
	c.Examples, c.Length, c.MaxBytes, c.Most, c.Judging = 2000, 128, 4<<30, 32, 5000 // those of the command
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// Evaluators that agree on a report that needs no work have no fees, and the host has them neither.
func TestReportsWithoutWork(t *testing.T) {
	for name, r := range map[string]Report{
		"no set":     {Absent: true},
		"no entries": {Entries: []Judged{{Status: Absent}, {Status: Invalid}, {Status: Absent}}},
	} {
		l, _ := three(t)
		panel := l.c.Panel
		for _, who := range panel {
			l.seal(who, r)
		}
		l.next()
		for _, who := range panel {
			l.must(l.open(who, r))
		}
		l.next()
		pool := map[bool]int64{true: 21 + 1, false: 21 + 30}[r.Absent] // the rest of the bond, or the deposits
		if l.c.Open() || l.coins[panel[0]] != 0 || l.coins[""] != pool {
			t.Errorf("%s: %+v", name, l.coins)
		}
	}
}

// An evaluator is drawn for no more panels than it can serve.
func TestFree(t *testing.T) {
	e, err := Evaluator{Account: "a"}.Offer(MinBond)
	for range MaxPanels {
		if err != nil || !e.Free() {
			t.Fatalf("%+v, %v", e, err)
		}
		e.Panels++
	}
	if e.Free() {
		t.Errorf("%+v", e)
	}
	e.Panels, e.Bond = 0, MinBond-1
	if e.Free() {
		t.Errorf("%+v", e)
	}
}

// Entrants that serve their files to some evaluators alone, so that no two reports are the same, lose their deposits
// when the contest is void for that. An entry that an evaluator of one panel alone did not get does not.
func TestTornEntriesLoseTheirDeposits(t *testing.T) {
	for _, liar := range []bool{false, true} {
		l, r := three(t)
		r.Entries[2] = placed("c", 3*Unit)
		for panel := range 3 {
			reports := map[string]Report{}
			for judge, who := range l.c.Panel {
				mine := Report{Entries: slices.Clone(r.Entries)}
				for i := range mine.Entries {
					if i > 0 && i != judge || liar && panel == 1 && judge == 0 {
						mine.Entries[i] = Judged{Status: Absent}
					}
				}
				reports[who] = mine
				l.seal(who, mine)
			}
			l.next()
			for who, mine := range reports {
				l.must(l.open(who, l.grouped(mine, true)))
			}
			l.next()
		}
		got := [4]int64{l.coins["host"], l.coins["ann"], l.coins["bob"], l.coins["cyd"]}
		if l.c.Why != Undecided || got != [4]int64{0, 0, -10, -10} || l.coins[""] != 20 {
			t.Errorf("liar %v: %s, %+v", liar, l.c.Why, l.coins)
		}
	}
}
