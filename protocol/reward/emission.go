package reward

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
)

// Rewards are paid once per epoch, in addition to the pay of jobs: by stake to participants that keep the uptime they
// are committed to; and to participants with paid verified work, by the fees of that work, the class of the machine,
// and the bytes that peers acknowledge. They are new coins, as the schedule says; coins that no participant earns are
// not made.
//
// An account can order work from itself and claim that it served it. Only the fee costs it anything, so the reward for
// work is bounded by a part of the fees of that work.

// Schedule of the coins that are made for rewards; governed.
type Schedule struct {
	PerEpoch     uint64 `cbor:"1,keyasint"` // uzen, at most, in the first epochs; 0: no rewards
	Halving      uint32 `cbor:"2,keyasint"` // epochs after which it is half as much; 0: never
	BasePPM      uint32 `cbor:"3,keyasint"` // of it, for uptime
	WorkPPM      uint32 `cbor:"4,keyasint"` // for verified work
	BandwidthPPM uint32 `cbor:"5,keyasint"` // for bytes served
}

// DefaultSchedule makes no coins: a network that wants them decides so in its genesis or by governance.
func DefaultSchedule() Schedule {
	return Schedule{Halving: 8760, BasePPM: 200_000, WorkPPM: 700_000, BandwidthPPM: 100_000}
}

// ErrSchedule is returned for a schedule that cannot govern.
var ErrSchedule = errors.New("reward: invalid schedule")

// Validate returns why a schedule cannot govern.
func (s Schedule) Validate() error {
	if parts := uint64(s.BasePPM) + uint64(s.WorkPPM) + uint64(s.BandwidthPPM); parts > million {
		return fmt.Errorf("%w: its parts are %d millionths of the whole", ErrSchedule, parts)
	}
	if s.PerEpoch > maxEmission {
		return fmt.Errorf("%w: %d uzen an epoch, at most %d", ErrSchedule, s.PerEpoch, uint64(maxEmission))
	}
	return nil
}

// maxEmission keeps the supply of a thousand epochs within 64 bits.
const maxEmission = 1 << 50

// Emission is the most that is made in an epoch, from 0, in uzen.
func (s Schedule) Emission(epoch int64) uint64 {
	if s.Halving == 0 {
		return s.PerEpoch
	}
	return s.PerEpoch >> min(63, max(0, epoch)/int64(s.Halving))
}

// Effort is the contribution of one participant to an epoch.
type Effort struct {
	registry.Participant
	Uptime *registry.Uptime // nil: it committed to no tier
	Flops  uint64           // of work that was verified and paid
	Fees   uint64           // of the payments for that work, to the community pool, in uzen
	Bytes  uint64           // that peers say they got from it
	Serves uint64           // bytes that it had to serve
	Speeds []registry.Speed // that each of them measured

	Presence *registry.Presence // as a verifier; nil: no audit was drawn for it
	Offers   bool               // it offers to audit for what it was paid for its last audit, or less
}

// Epoch is the input of SettleEpoch.
type Epoch struct {
	Number   int64
	Height   int64 // its last
	Schedule Schedule
	Registry registry.Params
	Efforts  []Effort
	Pool     uint64 // uzen that the community pool has
}

// Name is the job that the receipts of an epoch give. No job can have it.
func (e Epoch) Name() string { return fmt.Sprintf("epoch/%d", e.Number) }

// SettleEpoch settles an epoch: its rewards, and the slashes for uptime that was not kept. The order of the efforts
// does not matter. Each participant that worked, served or committed to a tier gets a receipt for it, also for an
// amount of 0.
func SettleEpoch(e Epoch) Settlement {
	l := &epoch{Epoch: e}
	l.Efforts = slices.SortedFunc(slices.Values(e.Efforts), func(a, b Effort) int { return cmp.Compare(a.ID, b.ID) })
	all := e.Schedule.Emission(e.Number)
	l.share(Emission, Base, market.Share(all, e.Schedule.BasePPM), l.base)
	l.share(Emission, WorkReward, market.Share(all, e.Schedule.WorkPPM), l.work)
	l.share(Emission, Bandwidth, market.Share(all, e.Schedule.BandwidthPPM), l.bandwidth)
	l.share(CommunityPool, Standby, l.pot(), l.standby)
	for _, f := range l.Efforts {
		l.slash(f)
	}
	return l.Settlement
}

type epoch struct {
	Settlement
	Epoch
}

// base is the part of a participant in the base reward, 0 with a reason; an empty reason means that it takes no part.
func (l *epoch) base(f Effort) (part uint64, reason string) {
	rule, ok := l.Registry.TierRule(f.Tier)
	switch {
	case f.Uptime == nil || !ok:
		return 0, ""
	case f.Jailed:
		return 0, Barred
	case !l.whole(f):
		return 0, PartOfEpoch
	case f.Uptime.PPM(l.Registry, l.Height) < rule.UptimePPM:
		return 0, Downtime
	}
	high, low := bits.Mul64(f.Firm(), uint64(rule.Weight))
	if high > 0 {
		low = math.MaxUint64
	}
	return low, KeptUptime
}

// whole reports whether a participant was committed for the whole epoch.
func (l *epoch) whole(f Effort) bool { return f.Uptime.From <= l.Number*l.Registry.EpochBlocks }

func (l *epoch) work(f Effort) (part uint64, reason string) {
	ppm := f.MultiplierPPM(l.Registry)
	switch {
	case f.Flops == 0:
		return 0, ""
	case f.Jailed:
		return 0, Barred
	case ppm == 0:
		return 0, NotMeasured
	case f.Fees == 0:
		return 0, NoFees
	}
	return Times(f.Fees, uint64(ppm), million), Verified
}

// Times is n x part / whole, rounded down; the largest number if it is beyond that.
func Times(n, part, whole uint64) uint64 {
	high, low := bits.Mul64(n, part)
	if high >= whole {
		return math.MaxUint64
	}
	amount, _ := bits.Div64(high, low, whole)
	return amount
}

// Bounds of the rewards of a participant, in parts per million of the fees of its work: together less than the fees.
const (
	WorkOfFeesPPM      = 800_000
	BandwidthOfFeesPPM = 100_000
)

// limit is the most that a participant gets from a pot, and whether there is such a bound.
func (f Effort) limit(kind Kind) (most uint64, bound bool) {
	switch kind {
	case WorkReward:
		return market.Share(f.Fees, WorkOfFeesPPM), true
	case Bandwidth:
		return market.Share(f.Fees, BandwidthOfFeesPPM), true
	}
	return 0, false
}

func (l *epoch) bandwidth(f Effort) (part uint64, reason string) {
	switch {
	case f.Bytes == 0 || f.Serves == 0:
		return 0, ""
	case f.Jailed:
		return 0, Barred
	}
	part = Times(f.Fees, min(f.Bytes, f.Serves), f.Serves)
	if f.Uptime != nil && l.whole(f) && f.Throttled(l.Registry, f.Speeds) {
		return part, Throttled // its peers report it without proof: it is reported, and loses nothing
	}
	if f.Fees == 0 {
		return 0, NoFees
	}
	return part, Served
}

// share divides a pot in proportion to the parts, rounded down; the rest is not made, or stays where it is.
func (l *epoch) share(from string, kind Kind, pot uint64, part func(Effort) (uint64, string)) {
	var whole uint64
	for _, f := range l.Efforts {
		p, _ := part(f)
		whole = saturate(whole, p)
	}
	for _, f := range l.Efforts {
		p, reason := part(f)
		if reason == "" {
			continue
		}
		r := Receipt{Who: f.ID, Kind: kind, Pot: pot, Part: p, Whole: whole, Reason: reason}
		if kind == WorkReward {
			r.Flops = f.Flops
		}
		r.Amount = r.portion()
		if most, bound := f.limit(kind); bound && r.Amount > most {
			r.Amount, r.Capped = most, true
		}
		switch {
		case reason == Throttled: // is said in any case
		case p > 0 && pot == 0 && from == CommunityPool:
			r.Reason = NoFeesPaid
		case p > 0 && pot == 0:
			r.Reason = NothingMade
		case r.Amount == 0 && (reason == Verified || reason == Served || reason == StoodBy):
			r.Reason = TooSmall
		}
		l.receipt(r)
		l.transfer(from, f.ID, r.Amount)
	}
}

// portion is Pot * Part / Whole, rounded down.
func (r Receipt) portion() uint64 {
	if r.Whole == 0 {
		return 0
	}
	return Times(r.Pot, min(r.Part, r.Whole), r.Whole)
}

func saturate(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}

// slash takes from the stake of a participant that was committed for the whole epoch and did not keep its uptime.
func (l *epoch) slash(f Effort) {
	rule, ok := l.Registry.TierRule(f.Tier)
	if f.Uptime == nil || !ok || f.Jailed || !l.whole(f) {
		return
	}
	if f.Uptime.PPM(l.Registry, l.Height) >= rule.UptimePPM {
		return
	}
	ppm := l.Registry.DowntimePPM
	_, amount := f.Slash(ppm)
	l.receipt(Receipt{Who: f.ID, Kind: Slash, Amount: amount, Reason: Downtime, Part: uint64(ppm), Whole: million})
	l.transfer(Stake(f.ID), CommunityPool, amount)
}

func (l *epoch) receipt(r Receipt) {
	r.Job, r.Height, r.Seq, r.Fix = l.Name(), l.Height, l.Seq, fixes[r.Reason]
	l.Seq++
	l.Receipts = append(l.Receipts, r)
}

func (l *epoch) transfer(from, to string, amount uint64) {
	if amount > 0 {
		l.Transfers = append(l.Transfers, Transfer{From: from, To: to, Amount: amount})
	}
}

// DelegationBook begins the job that receipts of the pool of a participant give. No job can have that name.
const DelegationBook = "delegation/"

// OfRun reports whether a receipt is of the run of a job, not of an epoch, of the revenue of a model or of a pool.
func (r Receipt) OfRun() bool {
	return !r.OfEpoch() && !strings.HasPrefix(r.Job, modelBook) && !strings.HasPrefix(r.Job, DelegationBook)
}

// OfEpoch reports whether a receipt is of an epoch.
func (r Receipt) OfEpoch() bool { return strings.HasPrefix(r.Job, "epoch/") }
