// Package earning has the rules for workers that register without a stake and earn it: the proof that such a worker
// sends, the time from which it is like any other, and when another may take its place. It holds no coins and lists no
// workers.
package earning

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// ErrRefused is returned for a registration without a stake that is refused.
var ErrRefused = errors.New("registry: the worker cannot earn its stake")

// ProofBlocks is the longest time from the beacon of a proof to the registration.
const ProofBlocks = 600

// Proves reports whether a number is the proof of an account: the digest of the beacon of a recent block, the account
// and the number begins with at least the given zero bits. No proof can be computed before that block.
func Proves(account string, beacon canon.Digest, zeros uint32, number uint64) bool {
	d := canon.Sum("starling/earn/1", beacon[:], []byte(account), binary.BigEndian.AppendUint64(nil, number))
	return uint32(bits.LeadingZeros64(binary.BigEndian.Uint64(d[:8]))) >= zeros
}

// Active reports whether a participant works without a stake now.
func Active(p registry.Participant) bool { return Placed(p) && !p.Jailed }

// Placed reports whether a participant has one of the places of Earning.Most. A convicted one keeps its place for as
// long as an idle one: so the lies within that time are bounded, in all runs together.
func Placed(p registry.Participant) bool { return p.Earning && p.Has(crew.Worker) }

// Begin checks a registration without a stake.
func Begin(p registry.Participant, params registry.Params) error {
	switch {
	case params.Earning.Most == 0:
		return fmt.Errorf("%w: this network asks every worker for a stake", ErrRefused)
	case len(p.Roles) == 0:
		return fmt.Errorf("%w: it takes the role of a worker", ErrRefused)
	}
	return works(p)
}

// works returns why a registration is none of a worker that earns its stake.
func works(p registry.Participant) error {
	switch {
	case len(p.Roles) > 0 && !slices.Equal(p.Roles, []crew.Role{crew.Worker}):
		return fmt.Errorf("%w: it takes the role of a worker, and no other", ErrRefused)
	case p.Tier != registry.NoTier || p.Pool != "":
		return fmt.Errorf("%w: a tier and a pool need a stake", ErrRefused)
	}
	return nil
}

// Renew checks a registration without a proof of a participant that earns its stake, and was old before. It gives its
// place up by taking no role, unless it was convicted or has a part in a run. Without a place, it needs a stake to take
// the role again.
func Renew(old, p registry.Participant, part bool, params registry.Params) error {
	least := max(params.MinStake(crew.Worker), params.Earning.Stake)
	switch {
	case len(p.Roles) == 0 && Placed(old) && (part || old.Jailed):
		return fmt.Errorf("%w: it has a part in a run, or was convicted, and keeps the role of a worker", ErrRefused)
	case len(p.Roles) > 0 && !Placed(old) && p.Firm() < least:
		return fmt.Errorf("%w: it has no place any more, and needs a proof, or a stake of %d uzen", ErrRefused, least)
	}
	return works(p)
}

// Paid adds the pay of a worker that earns its stake to that stake.
func Paid(p registry.Participant, amount uint64, params registry.Params) (registry.Participant, error) {
	p, err := p.TopUp(amount)
	return proven(p, params), err
}

// Audited is a worker that earns its stake after an audit at a height.
func Audited(p registry.Participant, passed bool, params registry.Params, height int64) registry.Participant {
	p = p.Audited(passed)
	if passed {
		p.EarnedAt = height
	}
	return proven(p, params)
}

// proven ends the time in which a participant earns its stake, once it has the stake and the audits.
func proven(p registry.Participant, params registry.Params) registry.Participant {
	if e := params.Earning; p.Earning && p.Stake >= e.Stake && p.Passed >= e.Audits {
		p.Earning, p.EarnedAt = false, 0
	}
	return p
}

// Idle reports whether another worker may take the place of one that earns its stake: of an unmeasured one in a twelfth
// of the time.
func Idle(p registry.Participant, params registry.Params, height int64) bool {
	blocks := params.Earning.IdleBlocks
	if p.Rate == 0 && !p.Jailed {
		blocks /= 12
	}
	return Placed(p) && height > p.EarnedAt+blocks
}

// Rest takes the place of a worker that earns its stake. It keeps its stake so far, and may register again.
func Rest(p registry.Participant) registry.Participant {
	p.Roles = nil
	return p
}
