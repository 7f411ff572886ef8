package earning

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// newcomer registers a worker without a stake.
func newcomer(t *testing.T, params registry.Params) registry.Participant {
	t.Helper()
	p, err := registry.Register(registry.Participant{ID: "w", PeerID: "peer", Roles: []crew.Role{crew.Worker},
		Earning: true}, params, 100)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A worker without a stake works, its pay is kept as its stake, and it is like any other once it has the stake and
// the audits.
func TestAWorkerEarnsItsStake(t *testing.T) {
	params := registry.DefaultParams()
	p := newcomer(t, params)
	if !p.Eligible(crew.Worker, params) || p.Eligible(crew.Verifier, params) {
		t.Error("it works, and verifies nothing")
	}
	for i := range params.Earning.Audits {
		if !p.Earning {
			t.Fatalf("it is done after %d audits", i)
		}
		if _, err := p.Unstake(1, params, 200); i > 0 && !errors.Is(err, registry.ErrUnstake) {
			t.Errorf("it takes pay out after %d audits: %v", i, err)
		}
		var err error
		if p, err = Paid(p, 2*params.Earning.Stake/uint64(params.Earning.Audits), params); err != nil {
			t.Fatal(err)
		}
		p = Audited(p, true, params, 150)
	}
	if p.Earning || p.Stake != 2*params.Earning.Stake {
		t.Errorf("it has what it needs: %+v", p)
	}
	if _, err := p.Unstake(1, params, 200); err != nil {
		t.Errorf("the stake is its own now: %v", err)
	}
}

// Its pay makes no stake before its audits in a row have passed: one failure begins them again.
func TestAFailedAuditBeginsAgain(t *testing.T) {
	params := registry.DefaultParams()
	p := newcomer(t, params)
	p, _ = Paid(p, params.Earning.Stake, params)
	for range params.Earning.Audits - 1 {
		p = Audited(p, true, params, 150)
	}
	p = Audited(Audited(p, false, params, 150), true, params, 160)
	if !p.Earning || p.EarnedAt != 160 {
		t.Errorf("one audit after a failure: %+v", p)
	}
}

func TestRegistrationsWithoutAStake(t *testing.T) {
	open, closed := registry.DefaultParams(), registry.DefaultParams()
	closed.Earning = registry.Earning{}
	for name, c := range map[string]struct {
		params registry.Params
		change func(*registry.Participant)
		want   error
	}{
		"a worker":   {params: open},
		"a verifier": {open, func(p *registry.Participant) { p.Roles[0] = crew.Verifier }, ErrRefused},
		"both": {open, func(p *registry.Participant) {
			p.Roles = append(p.Roles, crew.Verifier)
		}, ErrRefused},
		"no role":                 {open, func(p *registry.Participant) { p.Roles = nil }, ErrRefused},
		"a tier":                  {open, func(p *registry.Participant) { p.Tier = registry.Bronze }, ErrRefused},
		"a pool":                  {open, func(p *registry.Participant) { p.Pool = "pool" }, ErrRefused},
		"where none may":          {params: closed, want: ErrRefused},
		"one that does not earn":  {open, func(p *registry.Participant) { p.Earning = false }, registry.ErrStake},
		"with coins on top of it": {open, func(p *registry.Participant) { p.Stake = 5 }, nil},
	} {
		p := registry.Participant{ID: "w", PeerID: "peer", Roles: []crew.Role{crew.Worker}, Earning: true}
		if c.change != nil {
			c.change(&p)
		}
		err := error(nil)
		if p.Earning {
			err = Begin(p, c.params)
		}
		if err == nil {
			_, err = registry.Register(p, c.params, 1)
		}
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A convicted worker keeps its place and gets no work; a barred one returns only with a stake. A place is free when its
// worker was idle for long, sooner if its machine was never measured.
func TestPlacesOfWorkersWithoutAStake(t *testing.T) {
	params := registry.DefaultParams()
	e, p := params.Earning, newcomer(t, params)
	idle := func(p registry.Participant, after int64) bool { return Idle(p, params, p.EarnedAt+after) }
	if idle(p, e.IdleBlocks/12) || !idle(p, e.IdleBlocks/12+1) {
		t.Error("a place without a measured machine")
	}
	rated := p
	rated.Rate = e.Rate
	if idle(rated, e.IdleBlocks) || !idle(rated, e.IdleBlocks+1) {
		t.Error("a place with a measured machine")
	}
	jailed := rated.Jail(5000)
	if Active(jailed) || jailed.EarnedAt != 5000 || idle(jailed, e.IdleBlocks) || !idle(jailed, e.IdleBlocks+1) {
		t.Errorf("a convicted one: %+v", jailed)
	}
	jailed.Rate, jailed.RatedAt = e.Rate, 6000
	back, err := jailed.Unjail(params, 5000+params.JailBlocks)
	if err != nil || back.Eligible(crew.Worker, params) || back.Earning {
		t.Errorf("it is back without a stake: %+v, %v", back, err)
	}
	if r := Rest(rated); Placed(r) || r.Eligible(crew.Worker, params) || !r.Earning {
		t.Errorf("one whose place was taken: %+v", r)
	}
}

func TestProofs(t *testing.T) {
	e := registry.DefaultEarning()
	if e.ProofBits(0) != e.Bits || e.ProofBits(int(e.Most)) != e.Bits+8 || e.ProofBits(1<<20) != e.Bits+8 {
		t.Error("the fewer places are left, the more work a proof takes")
	}
	beacon, number := canon.Sum("beacon"), uint64(0)
	for !Proves("w", beacon, 10, number) {
		number++
	}
	if Proves("x", beacon, 10, number) || Proves("w", canon.Sum("another"), 10, number) {
		t.Error("a proof of another account, or with another beacon")
	}
	if !Proves("w", beacon, 0, number+1) {
		t.Error("no bits are asked for")
	}
}
