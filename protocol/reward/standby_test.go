package reward

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// standing is a verifier that answered an audit in the epoch of efforts.
func standing(id string, stake uint64) Effort {
	return Effort{
		Participant: registry.Participant{ID: id, Roles: []crew.Role{crew.Verifier}, Stake: stake},
		Presence:    &registry.Presence{Answered: 350, Price: 7}, Offers: true,
	}
}

// standbys are the receipts for standing by, by account, and all that the epoch pays for it.
func standbys(e Epoch) (all map[string]Receipt, sum uint64) {
	all = map[string]Receipt{}
	s := SettleEpoch(e)
	for _, r := range s.Receipts {
		if r.Kind == Standby {
			all[r.Who] = r
		}
	}
	for _, t := range s.Transfers {
		if t.From == CommunityPool {
			sum += t.Amount
		}
	}
	return all, sum
}

// Verifiers that answer what is drawn for them share a part of the fees, and of nothing else: what is paid is in the
// receipts, and the pool has it.
func TestVerifiersShareFeesForStandingBy(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		e := efforts() // 3 ZEN of fees
		e.Pool = random.Uint64N(400_000)
		var want uint64
		for i := range 1 + random.IntN(20) {
			e.Efforts = append(e.Efforts, standing(string(rune('a'+i)), 1_000_000+random.Uint64N(1<<40)))
		}
		all, sum := standbys(e)
		for _, r := range all {
			if want += r.Amount; r.Reason != StoodBy || !strings.Contains(Explain(r), "standby share") {
				t.Fatalf("%+v: %s", r, Explain(r))
			}
		}
		if sum != want || sum > min(e.Pool, 270_000) || sum+uint64(len(all)) < min(e.Pool, 270_000) {
			t.Fatalf("%d uzen are paid, receipts say %d, the pool has %d", sum, want, e.Pool)
		}
	}
}

// The standby share follows the stake, however many accounts it is split over.
func TestSybilsEarnNoMoreForStandingBy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		stake, n := 1_000_000*(1+random.Uint64N(1000)), 1+random.IntN(30)
		one, many := efforts(), efforts()
		one.Pool, many.Pool = 1<<40, 1<<40
		one.Efforts = append(one.Efforts, standing("honest", 50_000_000), standing("x", stake*uint64(n)))
		many.Efforts = append(many.Efforts, standing("honest", 50_000_000))
		for i := range n {
			many.Efforts = append(many.Efforts, standing("x"+string(rune('A'+i)), stake))
		}
		single, _ := standbys(one)
		split, sum := standbys(many)
		if together := sum - split["honest"].Amount; together > single["x"].Amount ||
			together+uint64(n) < single["x"].Amount {
			t.Fatalf("%d accounts earn %d, one earns %d", n, together, single["x"].Amount)
		}
	}
}

// A verifier that does not answer, or cannot be drawn, gets nothing, and a receipt with the reason.
func TestZerosOfStandingBy(t *testing.T) {
	for want, spoil := range map[string]func(*Effort){
		DrawMissed: func(f *Effort) { f.Presence.Missed = 300 },
		NoOffer:    func(f *Effort) { f.Offers = false },
		Barred:     func(f *Effort) { f.Jailed = true },
		Downtime:   func(f *Effort) { f.Tier, f.Uptime = registry.Gold, &registry.Uptime{From: 300} },
		"":         func(f *Effort) { f.Presence.Answered = 399 - 24*100 },
	} {
		e := efforts()
		e.Pool = 1 << 40
		f := standing("vic", 1_000_000)
		spoil(&f)
		e.Efforts = append(e.Efforts, f)
		all, sum := standbys(e)
		if r := all["vic"]; r.Reason != want || r.Amount != 0 || sum != 0 || want != "" && r.Fix == "" {
			t.Errorf("%s: %+v", want, r)
		}
	}
	e := efforts()
	e.Pool = 1 << 40
	e.Efforts = []Effort{standing("vic", 1_000_000)}
	if all, sum := standbys(e); all["vic"].Reason != NoFeesPaid || sum != 0 {
		t.Errorf("without fees: %+v", all["vic"])
	}
}

// An account that orders work from itself, and is also the only verifier, gets back less than its fee.
func TestOrderOfOneselfWithStandbyEarnsLessThanItsFee(t *testing.T) {
	for _, fees := range []uint64{1, 12, 500, 1_000_000} {
		e := efforts()
		e.Schedule.PerEpoch, e.Pool = maxEmission, 1<<40
		self := e.Efforts[0]
		self.Tier, self.Uptime, self.Flops, self.Fees, self.Bytes, self.Serves = registry.NoTier, nil, 1e19, fees, 1<<50,
			1<<50
		self.Roles, self.Presence, self.Offers = []crew.Role{
			crew.Worker,
			crew.Verifier,
		}, &registry.Presence{
			Answered: 350,
		}, true
		e.Efforts = []Effort{self}
		var made uint64
		for _, r := range SettleEpoch(e).Receipts {
			made += r.Amount
		}
		if made >= fees {
			t.Errorf("%d uzen are paid of fees of %d", made, fees)
		}
	}
}
