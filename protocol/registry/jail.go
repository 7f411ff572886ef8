package registry

import "fmt"

// Jail bars the participant from being matched over a conviction at a height, and takes its history and the measured
// rate of its machine.
func (p Participant) Jail(height int64) Participant {
	p.Jailed, p.Convicted, p.Rate, p.RatedAt = true, height, 0, 0
	if p.Earning {
		p.EarnedAt = height
	}
	return p.Audited(false)
}

// Unjail lets a convicted participant be matched again: Params.JailBlocks after its latest conviction, and with a
// machine that was measured since. Its history of audits starts from zero, and its conviction is remembered.
func (p Participant) Unjail(params Params, height int64) (Participant, error) {
	switch {
	case !p.Jailed:
		return p, fmt.Errorf("%w: %s is not barred", ErrJail, p.ID)
	case height < p.Convicted+params.JailBlocks:
		return p, fmt.Errorf("%w: %s may ask from block %d on", ErrJail, p.ID, p.Convicted+params.JailBlocks)
	case p.Rate == 0 || p.RatedAt <= p.Convicted:
		return p, fmt.Errorf("%w: the machine of %s was not measured since its conviction in block %d", ErrJail, p.ID,
			p.Convicted)
	}
	p.Jailed, p.Passed = false, 0
	switch { // it works again once it has a stake
	case p.Earning && p.Stake > 0: // paid after the verdict: that leaves after the audits, like all that it earned
		p.Roles = nil
	case p.Earning:
		p.Earning, p.EarnedAt = false, 0
	}
	return p, nil
}
