// Package registry has the participants of the network: their roles and addresses, the stake that answers for their
// work, their hardware as declared and measured, and the uptime they commit to.
//
// It holds the rules as pure functions. Storing participants, holding the coins and checking signatures belong to the
// chain; market has the offers of a participant, and reward its pay.
package registry

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Limits of one registration.
const (
	MaxAddrs  = 16
	MaxAddr   = 256 // bytes of one address
	MaxPeerID = 128 // bytes
	MaxDevice = 256 // bytes
)

const million = 1_000_000

// Sentinels of this package.
var (
	ErrInvalid  = errors.New("registry: invalid registration")
	ErrStake    = errors.New("registry: stake too small")
	ErrOverflow = errors.New("registry: amount too large")
	ErrUnstake  = errors.New("registry: the stake cannot leave")
	ErrTier     = errors.New("registry: the hardware is below what the tier asks")
	ErrBeat     = errors.New("registry: the participant was there in this window already")
	ErrMeasure  = errors.New("registry: not a move of this measurement")
	ErrReport   = errors.New("registry: not a report about a peer")
	ErrJail     = errors.New("registry: the participant stays barred")
	ErrParams   = errors.New("registry: invalid parameters")
	ErrPayee    = errors.New("registry: the payee stays")
)

// Participant is one account that works for the network, or that serves the job it ordered.
type Participant struct {
	ID      string      `cbor:"1,keyasint"` // account address
	Roles   []crew.Role `cbor:"2,keyasint"` // none: it has an address only
	Addrs   []string    `cbor:"3,keyasint"` // multiaddrs of its peer; may be empty if it only dials out
	PeerID  string      `cbor:"4,keyasint"`
	Device  string      `cbor:"5,keyasint"`  // hardware in the participant's own words; others are measured again
	Stake   uint64      `cbor:"6,keyasint"`  // uzen
	Slashed uint64      `cbor:"7,keyasint"`  // uzen taken so far
	Jailed  bool        `cbor:"8,keyasint"`  // a jailed participant is not matched
	Since   int64       `cbor:"9,keyasint"`  // height of registration
	Passed  uint32      `cbor:"10,keyasint"` // audits passed as a worker, in all runs, since the last failure

	Hardware Hardware `cbor:"11,keyasint"` // as declared
	Tier     Tier     `cbor:"12,keyasint"` // of uptime that it commits to
	Pool     string   `cbor:"13,keyasint"` // account that may also offer its work; empty: none may
	Rate     uint64   `cbor:"14,keyasint"` // measured operations a second; 0: not measured
	RatedAt  int64    `cbor:"15,keyasint"` // height
	Flagged  bool     `cbor:"16,keyasint"` // governance had said that its hardware is attested; nothing follows from it
	// milliseconds, median of the measurements of its peers in the last epoch; 0: not measured
	Latency uint32 `cbor:"17,keyasint"`
	Cluster string `cbor:"18,keyasint"` // first account of its cluster; empty: none is known to be close

	Leaving  uint64 `cbor:"19,keyasint,omitempty"` // uzen of the stake that leave it
	LeavesAt int64  `cbor:"20,keyasint,omitempty"` // height from which they may be paid out

	Convicted int64 `cbor:"21,keyasint,omitempty"` // height of the latest conviction; 0: none

	Earning  bool  `cbor:"22,keyasint,omitempty"` // it registered without a stake, and earns it
	EarnedAt int64 `cbor:"23,keyasint,omitempty"` // height at which it registered so, or passed its latest audit

	Payee Payee `cbor:"24,keyasint,omitempty"`

	Machine Machine `cbor:"25,keyasint,omitempty"` // of a fleet; zero: it works for itself

	Quote Quote `cbor:"26,keyasint,omitzero"` // that attests its machine; zero: it is not attested
}

// Quote is an attestation of a participant's machine that holds: the chain removes it when it ends.
type Quote struct {
	Measurement canon.Digest `cbor:"1,keyasint"` // of the software in it (attestation.Measurement.Digest)
	Until       int64        `cbor:"2,keyasint"` // seconds since 1970
}

// Attested reports whether a quote attests the machine of the participant.
func (p Participant) Attested() bool { return !p.Quote.Measurement.IsZero() }

// Machine is the part of a participant that works for the account of another, with a key of its own. Package fleet has
// the rules, and docs/adr/0154 the reasons.
type Machine struct {
	Owner string `cbor:"1,keyasint,omitempty"` // account that is paid, and gets the stake back
	Fees  uint64 `cbor:"2,keyasint,omitempty"` // uzen that the owner pays in a day for its transactions, at most
	// height up to which an account may become the machine; 0: one did
	Until   int64  `cbor:"3,keyasint,omitempty"`
	Claimed string `cbor:"4,keyasint,omitempty"` // the only account that may become the machine; empty: any
	Drains  bool   `cbor:"5,keyasint,omitempty"` // it takes no new work
	Revoked int64  `cbor:"6,keyasint,omitempty"` // height from which its key answers for past work only; 0: never
}

// OwnerID is the account that a participant works for: the owner of a machine, or itself.
func (p Participant) OwnerID() string { return cmp.Or(p.Machine.Owner, p.ID) }

// Register checks a registration and dates it. The caller must already hold the stake. Records about a participant,
// such as Slashed and Rate, start from zero.
func Register(p Participant, params Params, height int64) (Participant, error) {
	if err := p.check(); err != nil {
		return Participant{}, err
	}
	if p.Earning {
		p.EarnedAt = height
	}
	for _, r := range p.Roles {
		if least := params.MinStake(r); p.Firm() < least && !(p.Earning && r == crew.Worker) {
			return Participant{}, fmt.Errorf("%w: %d uzen, role %d needs at least %d: stake more", ErrStake, p.Firm(), r, least)
		}
	}
	if err := p.commits(params); err != nil {
		return Participant{}, err
	}
	p.Roles = slices.Clone(p.Roles)
	slices.Sort(p.Roles)
	p.Addrs = slices.Clone(p.Addrs)
	p.Since = height
	return p.found(Participant{}), nil
}

// Moved gives a participant other addresses. The stake does not matter: a slashed participant must still be reachable.
func (p Participant) Moved(peerID string, addrs []string) (Participant, error) {
	if peerID != p.PeerID { // the quote is about the other one
		p.Quote = Quote{}
	}
	p.PeerID, p.Addrs = peerID, slices.Clone(addrs)
	return p, p.check()
}

// found copies the records about a participant from another registration of it.
func (p Participant) found(old Participant) Participant {
	p.Slashed, p.Jailed, p.Passed, p.Convicted = old.Slashed, old.Jailed, old.Passed, old.Convicted
	p.Rate, p.RatedAt, p.Latency, p.Cluster, p.Quote = old.Rate, old.RatedAt, old.Latency, old.Cluster, old.Quote
	return p
}

// Renew replaces the registration of a participant by a new one. Its records stay; the measured ones are dropped if it
// declares another device.
func (p Participant) Renew(next Participant) Participant {
	renewed := next.found(p)
	renewed.Since = p.Since
	renewed.Payee, renewed.Machine = p.Payee, p.Machine
	if p.Earning && len(p.Roles) > 0 {
		renewed.EarnedAt = p.EarnedAt
	}
	if next.Device != p.Device || next.Hardware.Kind != p.Hardware.Kind || next.Hardware.Memory != p.Hardware.Memory {
		renewed.Rate, renewed.RatedAt, renewed.Quote = 0, 0, Quote{}
	}
	if next.PeerID != p.PeerID {
		renewed.Quote = Quote{}
	}
	return renewed
}

func (p Participant) check() error {
	switch {
	case p.ID == "":
		return fmt.Errorf("%w: no account", ErrInvalid)
	case len(p.Addrs) > MaxAddrs:
		return fmt.Errorf("%w: %d addresses, at most %d", ErrInvalid, len(p.Addrs), MaxAddrs)
	case p.PeerID == "" || len(p.PeerID) > MaxPeerID:
		return fmt.Errorf("%w: peer id of %d bytes, wanted 1 to %d", ErrInvalid, len(p.PeerID), MaxPeerID)
	case len(p.Device) > MaxDevice:
		return fmt.Errorf("%w: device of %d bytes, at most %d", ErrInvalid, len(p.Device), MaxDevice)
	}
	for i, r := range p.Roles {
		if r != crew.Worker && r != crew.Verifier {
			return fmt.Errorf("%w: role %d is not known", ErrInvalid, r)
		}
		if slices.Contains(p.Roles[:i], r) {
			return fmt.Errorf("%w: role %d is given twice", ErrInvalid, r)
		}
	}
	for _, a := range p.Addrs {
		if a == "" || len(a) > MaxAddr {
			return fmt.Errorf("%w: address of %d bytes, wanted 1 to %d", ErrInvalid, len(a), MaxAddr)
		}
	}
	if len(p.Pool) > terms.MaxID {
		return fmt.Errorf("%w: pool of %d bytes, at most %d", ErrInvalid, len(p.Pool), terms.MaxID)
	}
	return p.Hardware.check()
}

// Has reports whether the participant takes a role.
func (p Participant) Has(r crew.Role) bool { return slices.Contains(p.Roles, r) }

// Declares reports whether a registration says of the machine what another one does, and has the roles of that.
func (p Participant) Declares(next Participant) bool {
	return p.Device == next.Device && p.Hardware == next.Hardware && p.Tier == next.Tier && p.Pool == next.Pool &&
		!slices.ContainsFunc(next.Roles, func(r crew.Role) bool { return !p.Has(r) })
}

// Eligible reports whether the participant may be matched in a role: it takes it, is neither jailed nor a machine that
// drains, and has the stake, or earns it as a worker.
func (p Participant) Eligible(r crew.Role, params Params) bool {
	return p.Has(r) && !p.Jailed && !p.Machine.Drains && (p.Firm() >= params.MinStake(r) || p.Earning && r == crew.Worker)
}

// Collateral is the amount by market.Order.Value that the stake still covers, in uzen, with leased covered already.
func (p Participant) Collateral(params Params, leased uint64) uint64 {
	if params.CoverPPM == 0 {
		return math.MaxUint64
	}
	high, low := bits.Mul64(p.Firm(), million)
	if high >= uint64(params.CoverPPM) {
		return math.MaxUint64
	}
	all, _ := bits.Div64(high, low, uint64(params.CoverPPM))
	return all - min(all, leased)
}

// TopUp adds to the stake.
func (p Participant) TopUp(amount uint64) (Participant, error) {
	sum, carry := bits.Add64(p.Stake, amount, 0)
	if carry != 0 {
		return p, fmt.Errorf("%w: %d uzen on top of %d", ErrOverflow, amount, p.Stake)
	}
	p.Stake = sum
	return p, nil
}

// Slash takes a fraction of the stake, in parts per million rounded down, and returns the amount.
func (p Participant) Slash(fractionPPM uint32) (Participant, uint64) {
	high, low := bits.Mul64(p.Stake, uint64(min(fractionPPM, million)))
	amount, _ := bits.Div64(high, low, million)
	return p.Withdraw(amount), amount
}

// Withdraw takes an amount from the stake, or all of it if it is less.
func (p Participant) Withdraw(amount uint64) Participant {
	amount = min(amount, p.Stake)
	p.Stake -= amount
	p.Slashed += amount
	p.Leaving = min(p.Leaving, p.Stake)
	return p
}

// Firm is the part of the stake that stays, in uzen: work is leased against it alone. All of the stake can be slashed
// for past work.
func (p Participant) Firm() uint64 { return p.Stake - p.Leaving }

// Unstake sets how much of the stake is to leave it, in uzen, in place of an earlier amount. It leaves
// Params.UnstakeBlocks later, and not while the participant has a part in a run. A participant with a tier keeps the
// stake of the tier.
func (p Participant) Unstake(amount uint64, params Params, height int64) (Participant, error) {
	if amount > p.Stake {
		return p, fmt.Errorf("%w: %d uzen of a stake of %d", ErrUnstake, amount, p.Stake)
	}
	if e := params.Earning; p.Earning && amount > 0 && p.Passed < e.Audits {
		return p, fmt.Errorf("%w: the worker earns it, and has passed %d of %d audits", ErrUnstake, p.Passed, e.Audits)
	}
	p.Leaving, p.LeavesAt = amount, 0
	if amount == 0 {
		return p, nil
	}
	p.LeavesAt = height + params.UnstakeBlocks
	if err := p.commits(params); err != nil {
		return p, fmt.Errorf("%w: %w", ErrUnstake, err)
	}
	return p, nil
}

// Release takes the leaving part out of the stake, and returns the amount.
func (p Participant) Release() (Participant, uint64) {
	amount := p.Leaving
	p.Stake, p.Leaving, p.LeavesAt = p.Stake-amount, 0, 0
	return p, amount
}

// Audited adds the outcome of an audit to the history of a worker over all runs. The more audits it has passed, the
// fewer of its units are audited; after a failure the history starts from zero. A new account has no history, and
// stakes again.
func (p Participant) Audited(passed bool) Participant {
	switch {
	case !passed:
		p.Passed = 0
	case p.Passed < math.MaxUint32:
		p.Passed++
	}
	return p
}
