package registry

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func TestEarningValidates(t *testing.T) {
	for name, change := range map[string]func(*Earning){
		"too many": func(e *Earning) { e.Most = 1 << 20 }, "no stake": func(e *Earning) { e.Stake = 0 },
		"no audits": func(e *Earning) { e.Audits = 0 }, "no rate": func(e *Earning) { e.Rate = 0 },
		"endless proofs": func(e *Earning) { e.Bits = 64 }, "no time": func(e *Earning) { e.IdleBlocks = 0 },
	} {
		p := DefaultParams()
		if change(&p.Earning); !errors.Is(p.Validate(), ErrParams) {
			t.Errorf("%s: %v", name, p.Validate())
		}
	}
}

// The account that is paid changes that at once; the participant's own change waits once another account is named, and
// the named account replaces it meanwhile.
func TestPayee(t *testing.T) {
	params := DefaultParams()
	p := Participant{ID: "w", Stake: 7}
	set := func(by, payee string, height, from int64) {
		t.Helper()
		var at int64
		var err error
		if p.Payee, at, err = p.Payee.Set(p.ID, by, payee, params.UnstakeBlocks, height); err != nil || at != from {
			t.Fatalf("%s names %s: from %d, want %d (%v)", by, payee, at, from, err)
		}
	}
	pays := func(height int64, want string) {
		t.Helper()
		if got := Pays(p, height); got != want {
			t.Errorf("at %d %s is paid, want %s", height, got, want)
		}
	}
	pays(1, "w")
	if _, _, err := p.Payee.Set("w", "x", "x", 9, 1); !errors.Is(err, ErrPayee) {
		t.Errorf("a stranger names itself: %v", err)
	}
	set("w", "cold", 10, 10)
	pays(10, "cold")
	wait := params.UnstakeBlocks
	set("w", "thief", 20, 20+wait) // with a stolen key
	pays(19+wait, "cold")
	pays(20+wait, "thief")
	set("cold", "colder", 30, 30)
	pays(20+wait, "colder")
	if _, _, err := p.Payee.Set("w", "cold", "cold", 9, 31); !errors.Is(err, ErrPayee) {
		t.Errorf("it was paid before: %v", err)
	}
	set("w", "", 40, 40+wait)
	set("w", "colder", 50, 50) // takes it back
	pays(40+wait, "colder")
	set("w", "w", 60, 60+wait)
	pays(60+wait, "w")
	set("w", "next", 61+wait, 61+wait) // no other account is named any more
	pays(61+wait, "next")
	again := p.Renew(Participant{ID: "w", PeerID: "peer"})
	if Pays(again, 1000+wait) != "next" {
		t.Error("another registration changes who is paid")
	}
}

// A stolen key of the participant can do what it likes, in any order: within the time that a stake takes to leave only
// the account that its owner named is paid.
func TestAStolenKeyMovesNoPay(t *testing.T) {
	params := DefaultParams()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := Participant{ID: "w"}
		var err error
		p.Payee, _, err = p.Payee.Set("w", "w", "cold", params.UnstakeBlocks, 1)
		if err != nil {
			t.Fatal(err)
		}
		for height := int64(2); height < params.UnstakeBlocks; height += 1 + r.Int64N(4000) {
			to := []string{"thief", "", "w", "cold", "other"}[r.IntN(5)]
			if p.Payee, _, err = p.Payee.Set("w", "w", to, params.UnstakeBlocks, height); err != nil {
				t.Fatal(err)
			}
			if Pays(p, height) != "cold" || Pays(p, params.UnstakeBlocks) != "cold" {
				t.Fatalf("%s is paid at %d", Pays(p, height), height)
			}
		}
	}
}
