package registry

import "fmt"

// Tier is the uptime that a participant commits to.
type Tier uint8

// Tiers are part of the format.
const (
	NoTier Tier = 0 // promises no uptime
	Bronze Tier = 1
	Silver Tier = 2
	Gold   Tier = 3
)

var tierNames = [...]string{NoTier: "none", Bronze: "bronze", Silver: "silver", Gold: "gold"}

// String names a tier as job files do.
func (t Tier) String() string {
	if int(t) < len(tierNames) {
		return tierNames[t]
	}
	return "unknown"
}

// ParseTier is the inverse of String.
func ParseTier(name string) (Tier, bool) {
	for t, n := range tierNames {
		if n == name {
			return Tier(t), true
		}
	}
	return 0, false
}

// TierRule has the promises and requirements of a tier.
type TierRule struct {
	Tier      Tier   `cbor:"1,keyasint"`
	UptimePPM uint32 `cbor:"2,keyasint"` // of an epoch, at least
	Memory    uint64 `cbor:"3,keyasint"` // MiB, at least
	Upload    uint64 `cbor:"4,keyasint"` // kbit/s promised, at least
	Stake     uint64 `cbor:"5,keyasint"` // uzen, at least
	Weight    uint32 `cbor:"6,keyasint"` // of a participant when the base reward is shared
}

// TierRule finds the rule of a tier; NoTier has none.
func (p Params) TierRule(t Tier) (TierRule, bool) {
	for _, r := range p.Tiers {
		if r.Tier == t {
			return r, true
		}
	}
	return TierRule{}, false
}

// commits checks that a participant meets the requirements of its tier.
func (p Participant) commits(params Params) error {
	if p.Tier == NoTier {
		return nil
	}
	r, ok := params.TierRule(p.Tier)
	switch {
	case !ok:
		return fmt.Errorf("%w: tier %d is not known", ErrInvalid, p.Tier)
	case p.Hardware.Memory < r.Memory:
		return fmt.Errorf("%w: %d MiB of memory, %s needs %d", ErrTier, p.Hardware.Memory, p.Tier, r.Memory)
	case p.Hardware.Upload < r.Upload:
		return fmt.Errorf("%w: %d kbit/s promised, %s needs %d", ErrTier, p.Hardware.Upload, p.Tier, r.Upload)
	case p.Firm() < r.Stake:
		return fmt.Errorf("%w: %d uzen, %s needs %d", ErrStake, p.Firm(), p.Tier, r.Stake)
	}
	return nil
}

// Uptime counts the part of an epoch in which a participant with a tier was online. An epoch is cut into windows of
// Params.BeatBlocks; a heartbeat in a window counts that window, and each missed duty takes one away.
type Uptime struct {
	From   int64  `cbor:"1,keyasint"` // height of the commitment, or of the epoch
	Beats  uint32 `cbor:"2,keyasint"` // windows with a heartbeat
	Last   int64  `cbor:"3,keyasint"` // 1 + the last such window; 0: none
	Missed uint32 `cbor:"4,keyasint"` // duties
}

// Heartbeat records at a height that a participant is online. A second one in the same window is refused: it would
// cost a transaction for nothing.
func (u Uptime) Heartbeat(params Params, height int64) (Uptime, error) {
	window := height / params.BeatBlocks
	if u.Last > window {
		return u, fmt.Errorf("%w: the next from height %d", ErrBeat, (window+1)*params.BeatBlocks)
	}
	u.Last = window + 1
	u.Beats++
	return u, nil
}

// Miss counts a missed duty.
func (u Uptime) Miss() Uptime {
	u.Missed++
	return u
}

// PPM is the uptime at the end of a height, in parts per million of the windows that have ended since From.
func (u Uptime) PPM(params Params, height int64) uint32 {
	windows := (height+1)/params.BeatBlocks - (u.From+params.BeatBlocks-1)/params.BeatBlocks
	if windows <= 0 {
		return million
	}
	there := max(0, int64(u.Beats)-int64(u.Missed))
	return uint32(min(million, there*million/windows))
}

// Epoch reports whether an epoch ends with a height, and which one it is, from 0.
func (p Params) Epoch(height int64) (epoch int64, ends bool) {
	return height / p.EpochBlocks, (height+1)%p.EpochBlocks == 0
}
