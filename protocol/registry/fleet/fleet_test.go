package fleet

import (
	"bytes"
	"errors"
	"testing"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

func TestInvitations(t *testing.T) {
	params := registry.DefaultParams()
	least := Least(params)
	for name, c := range map[string]struct {
		stake, fees uint64
		until       int64
		want        error
	}{
		"one":            {least, 0, 11, nil},
		"little stake":   {least - 1, 0, 11, registry.ErrStake},
		"high fees":      {least, MostFees + 1, 11, ErrInvitation},
		"over":           {least, 0, 10, ErrInvitation},
		"without an end": {least, 0, 11 + terms.MaxBlocks, ErrInvitation},
	} {
		if _, err := Invite("i", "owner", c.stake, c.fees, c.until, params, 10); !errors.Is(err, c.want) ||
			c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	p, err := Invite("i", "owner", least, 5, 100, params, 10)
	if err != nil {
		t.Fatal(err)
	}
	claimed := p
	claimed.Machine.Claimed = "a"
	for name, c := range map[string]struct {
		p       registry.Participant
		account string
		height  int64
		want    error
	}{
		"in time":          {p, "a", 100, nil},
		"late":             {p, "a", 101, ErrInvitation},
		"claimed by it":    {claimed, "a", 50, nil},
		"claimed by other": {claimed, "b", 50, ErrInvitation},
		"the owner":        {p, "owner", 50, ErrInvitation},
		"a machine":        {Enrol(p, "a", 20), "b", 50, ErrInvitation},
		"none":             {registry.Participant{}, "a", 50, ErrInvitation},
	} {
		if err := Open(c.p, c.account, c.height); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if p.Eligible(crew.Worker, params) || p.OwnerID() != "owner" {
		t.Errorf("an invitation works: %+v", p)
	}
}

// machine registers as a worker, by an invitation.
func machine(t *testing.T, params registry.Params) registry.Participant {
	t.Helper()
	p, err := Invite("i", "owner", 5_000_000, 5, 100, params, 10)
	if err != nil {
		t.Fatal(err)
	}
	p = Enrol(p, "m", 20)
	next, err := registry.Register(registry.Participant{ID: "m", PeerID: "peer", Roles: []crew.Role{crew.Worker},
		Stake: p.Stake}, params, 21)
	if err != nil {
		t.Fatal(err)
	}
	return p.Renew(next)
}

// A machine keeps its owner through registrations, works, drains and works again; a revoked one has no role, and all
// of its stake leaves.
func TestMachines(t *testing.T) {
	params := registry.DefaultParams()
	p := machine(t, params)
	if !p.Eligible(crew.Worker, params) || registry.Pays(p, 1000) != "owner" || p.OwnerID() != "owner" {
		t.Errorf("a machine: %+v", p)
	}
	p.Payee = registry.Payee{ID: "thief"}
	if registry.Pays(p, 1000) != "owner" {
		t.Error("another than the owner is paid")
	}
	if d, err := Change(p, true, 7); err != nil || d.Eligible(crew.Worker, params) || d.Stake != p.Stake+7 {
		t.Errorf("it drains: %+v, %v", d, err)
	} else if d, err = Change(d, false, 0); err != nil || !d.Eligible(crew.Worker, params) {
		t.Errorf("it works again: %+v, %v", d, err)
	}
	r := Revoke(p, params, 300)
	if r.Eligible(crew.Worker, params) || r.Firm() != 0 || r.LeavesAt != 300+params.UnstakeBlocks || r.Tier != 0 {
		t.Errorf("revoked: %+v", r)
	}
	if err := Owned(r, "owner"); !errors.Is(err, ErrNotOwner) {
		t.Errorf("revoked twice: %v", err)
	}
	if err := Owned(p, "thief"); !errors.Is(err, ErrNotOwner) {
		t.Errorf("by another: %v", err)
	}
	if err := Owned(registry.Participant{ID: "x"}, ""); !errors.Is(err, ErrNotOwner) {
		t.Errorf("one without an owner: %v", err)
	}
	if r, amount := r.Release(); amount != p.Stake || r.Stake != 0 {
		t.Errorf("%d leave, %+v stays", amount, r)
	}
	for name, change := range map[string]func(*registry.Participant){
		"a pool":  func(p *registry.Participant) { p.Pool = "pool" },
		"earns":   func(p *registry.Participant) { p.Earning = true },
		"revoked": func(p *registry.Participant) { *p = Revoke(*p, params, 300) },
	} {
		q := p
		if change(&q); !errors.Is(Renew(q), ErrMachine) {
			t.Errorf("%s registers", name)
		}
	}
}

// The name of an invitation is the address of no key, and what admits an account is of one chain and one account.
func TestNames(t *testing.T) {
	if a, b := Place("o", []byte("a")), Place("o", []byte("b")); len(a) != 20 || bytes.Equal(a, b) {
		t.Errorf("%x, %x", a, b)
	}
	if bytes.Equal(Text("a", "bc", "d"), Text("ab", "c", "d")) || bytes.Equal(Text("a", "b", "c"), Text("a", "b", "d")) {
		t.Error("one text for two")
	}
}
