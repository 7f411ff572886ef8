package registry

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
)

var params = Params{WorkerStake: 100, VerifierStake: 200}

func valid() Participant {
	return Participant{
		ID:     "starling1a",
		Roles:  []crew.Role{crew.Verifier, crew.Worker},
		Addrs:  []string{"/ip4/127.0.0.1/tcp/4001"},
		PeerID: "12D3KooW",
		Device: "laptop, 4 cores",
		Stake:  200,
	}
}

func TestRegister(t *testing.T) {
	p := valid()
	p.Slashed, p.Jailed = 7, true
	got, err := Register(p, params, 42)
	if err != nil {
		t.Fatal(err)
	}
	if got.Since != 42 || got.Slashed != 0 || got.Jailed {
		t.Errorf("not a fresh registration: %+v", got)
	}
	if !got.Eligible(crew.Worker, params) || !got.Eligible(crew.Verifier, params) {
		t.Errorf("not eligible: %+v", got)
	}
	if got.Jail(7).Eligible(crew.Worker, params) {
		t.Error("eligible in jail")
	}
}

// A worker takes its history from run to run, and loses it with an audit that it does not pass, with a conviction, and
// with its name.
func TestHistory(t *testing.T) {
	p, err := Register(valid(), params, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		p = p.Audited(true)
	}
	if p.Passed != 5 {
		t.Errorf("%d audits passed", p.Passed)
	}
	full := p
	full.Passed = math.MaxUint32
	again, err := Register(p, params, 2)
	for name, got := range map[string]uint32{"a failure": p.Audited(false).Passed, "a conviction": p.Jail(7).Passed,
		"a new name": again.Passed} {
		if got != 0 || err != nil {
			t.Errorf("after %s: %d audits passed (%v)", name, got, err)
		}
	}
	if full.Audited(true).Passed != math.MaxUint32 {
		t.Error("the count wraps")
	}
}

func TestRegisterRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Participant)
		want  error
	}{
		"no account":      {func(p *Participant) { p.ID = "" }, ErrInvalid},
		"unknown role":    {func(p *Participant) { p.Roles = []crew.Role{9} }, ErrInvalid},
		"role twice":      {func(p *Participant) { p.Roles = []crew.Role{crew.Worker, crew.Worker} }, ErrInvalid},
		"many addresses":  {func(p *Participant) { p.Addrs = make([]string, MaxAddrs+1) }, ErrInvalid},
		"empty address":   {func(p *Participant) { p.Addrs = []string{""} }, ErrInvalid},
		"long address":    {func(p *Participant) { p.Addrs = []string{strings.Repeat("a", MaxAddr+1)} }, ErrInvalid},
		"no peer":         {func(p *Participant) { p.PeerID = "" }, ErrInvalid},
		"long device":     {func(p *Participant) { p.Device = strings.Repeat("a", MaxDevice+1) }, ErrInvalid},
		"verifier stake":  {func(p *Participant) { p.Stake = 199 }, ErrStake},
		"no stake at all": {func(p *Participant) { p.Stake, p.Roles = 0, []crew.Role{crew.Worker} }, ErrStake},
	} {
		p := valid()
		c.spoil(&p)
		if _, err := Register(p, params, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestStake(t *testing.T) {
	p, err := valid().TopUp(301)
	if err != nil || p.Stake != 501 {
		t.Fatalf("top up: %d, %v", p.Stake, err)
	}
	p, taken := p.Slash(500_000)
	if taken != 250 || p.Stake != 251 || p.Slashed != 250 {
		t.Errorf("slash: took %d, left %+v", taken, p)
	}
	p, taken = p.Slash(2_000_000)
	if taken != 251 || p.Stake != 0 || p.Slashed != 501 {
		t.Errorf("slash of more than all: took %d, left %+v", taken, p)
	}
	if p.Eligible(crew.Worker, params) {
		t.Error("eligible without stake")
	}
	full := Participant{Stake: math.MaxUint64}
	if _, err := full.TopUp(1); !errors.Is(err, ErrOverflow) {
		t.Errorf("overflow: %v", err)
	}
	if _, taken := full.Slash(1_000_000); taken != math.MaxUint64 {
		t.Errorf("slash of the largest stake took %d", taken)
	}
	if left := (Participant{Stake: 5}).Withdraw(9); left.Stake != 0 || left.Slashed != 5 {
		t.Errorf("took more than there was: %+v", left)
	}
}

// The part of a stake that leaves covers no new work, can be slashed for past work, and is never more than the stake.
func TestUnstake(t *testing.T) {
	params := DefaultParams()
	p, err := Register(Participant{ID: "a", Roles: []crew.Role{crew.Worker}, PeerID: "peer", Stake: 10_000_000}, params, 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Unstake(10_000_001, params, 7); !errors.Is(err, ErrUnstake) {
		t.Errorf("more than there is: %v", err)
	}
	left, err := p.Unstake(9_500_000, params, 7)
	if err != nil || left.Firm() != 500_000 || left.LeavesAt != 7+params.UnstakeBlocks ||
		left.Eligible(crew.Worker, params) || left.Collateral(params, 0)*20 != p.Collateral(params, 0) {
		t.Errorf("%+v (%v)", left, err)
	}
	if again, err := left.Unstake(0, params, 8); err != nil || again.Leaving != 0 || again.LeavesAt != 0 ||
		!again.Eligible(crew.Worker, params) {
		t.Errorf("nothing leaves any more: %+v (%v)", again, err)
	}
	slashed, taken := left.Slash(500_000)
	if taken != 5_000_000 || slashed.Stake != 5_000_000 || slashed.Leaving != 5_000_000 || slashed.Firm() != 0 {
		t.Errorf("half was slashed: %+v", slashed)
	}
	if paid, amount := slashed.Release(); amount != 5_000_000 || paid.Stake != 0 || paid.Leaving != 0 ||
		paid.Slashed != 5_000_000 {
		t.Errorf("%d are paid out: %+v", amount, paid)
	}
	p.Hardware, p.Tier = Hardware{Memory: 64 * gib, Upload: 1_000_000}, Bronze
	if _, err := p.Unstake(1, params, 7); !errors.Is(err, ErrUnstake) || !errors.Is(err, ErrStake) {
		t.Errorf("below the stake of a tier: %v", err)
	}
}

// A registration is made again for another machine, and for a role that is not registered yet; not for fewer roles.
func TestDeclares(t *testing.T) {
	p := Participant{ID: "a", Roles: []crew.Role{crew.Worker, crew.Verifier}, Device: "d", Hardware: Hardware{Cores: 2}}
	fewer, other, worker := p, p, p
	fewer.Roles, worker.Roles, other.Hardware.Cores = []crew.Role{crew.Verifier}, []crew.Role{crew.Worker}, 3
	if !p.Declares(p) || !p.Declares(fewer) || p.Declares(other) || worker.Declares(p) {
		t.Error("a machine with other cores, or a role more, is declared")
	}
}
