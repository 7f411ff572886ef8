// Package registry is who takes part in the network: their roles, their addresses, and the stake that answers for their
// work.
//
// It holds the rules for one participant at a time, as pure functions. Storing participants, holding the coins and
// checking signatures belong to the chain; what a participant asks for its work belongs to market.
package registry

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/protocol/run"
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
)

// Participant is one account that works for the network, or that serves the job it ordered.
type Participant struct {
	ID      string     `cbor:"1,keyasint"` // account address
	Roles   []run.Role `cbor:"2,keyasint"` // none: it only says where it is reached
	Addrs   []string   `cbor:"3,keyasint"` // multiaddrs of its peer, may be empty for who only dials out
	PeerID  string     `cbor:"4,keyasint"`
	Device  string     `cbor:"5,keyasint"`  // hardware in the participant's own words; nothing is decided by it
	Stake   uint64     `cbor:"6,keyasint"`  // uzen
	Slashed uint64     `cbor:"7,keyasint"`  // uzen taken so far
	Jailed  bool       `cbor:"8,keyasint"`  // a jailed participant is not matched
	Since   int64      `cbor:"9,keyasint"`  // height of registration
	Passed  uint32     `cbor:"10,keyasint"` // audits passed as a worker, in all runs, since the last failure
}

// Params are the smallest stakes with which a role may be taken, in uzen.
type Params struct {
	WorkerStake   uint64 `cbor:"1,keyasint"`
	VerifierStake uint64 `cbor:"2,keyasint"`
}

// MinStake is the smallest stake for a role.
func (p Params) MinStake(r run.Role) uint64 {
	if r == run.Verifier {
		return p.VerifierStake
	}
	return p.WorkerStake
}

// Register checks a registration and dates it. Stake must already be held by the caller; Slashed and Jailed start
// fresh.
func Register(p Participant, params Params, height int64) (Participant, error) {
	if err := p.check(); err != nil {
		return Participant{}, err
	}
	for _, r := range p.Roles {
		if least := params.MinStake(r); p.Stake < least {
			return Participant{}, fmt.Errorf("%w: %d uzen, role %d needs at least %d: stake more", ErrStake, p.Stake, r, least)
		}
	}
	p.Roles = slices.Clone(p.Roles)
	slices.Sort(p.Roles)
	p.Addrs = slices.Clone(p.Addrs)
	p.Slashed, p.Jailed, p.Since, p.Passed = 0, false, height, 0
	return p, nil
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
		if r != run.Worker && r != run.Verifier {
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
	return nil
}

// Has reports whether the participant takes a role.
func (p Participant) Has(r run.Role) bool { return slices.Contains(p.Roles, r) }

// Eligible reports whether the participant may be matched in a role: it takes it, is not jailed, and has the stake.
func (p Participant) Eligible(r run.Role, params Params) bool {
	return p.Has(r) && !p.Jailed && p.Stake >= params.MinStake(r)
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

// Slash takes a fraction of the stake, in parts per million rounded down, and returns what was taken.
func (p Participant) Slash(fractionPPM uint32) (Participant, uint64) {
	high, low := bits.Mul64(p.Stake, uint64(min(fractionPPM, million)))
	amount, _ := bits.Div64(high, low, million)
	return p.Take(amount), amount
}

// Take takes an amount from the stake, or all of it if it is less.
func (p Participant) Take(amount uint64) Participant {
	amount = min(amount, p.Stake)
	p.Stake -= amount
	p.Slashed += amount
	return p
}

// Jail bars the participant from being matched, and takes its history.
func (p Participant) Jail() Participant {
	p.Jailed = true
	return p.Audited(false)
}

// Audited adds the outcome of an audit to the history that a worker takes from run to run: what it does is audited less, the
// more audits it has passed, and from the beginning after one that it has not. Who comes back under another name has no
// history, and stakes again.
func (p Participant) Audited(passed bool) Participant {
	switch {
	case !passed:
		p.Passed = 0
	case p.Passed < math.MaxUint32:
		p.Passed++
	}
	return p
}
