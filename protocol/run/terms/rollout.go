package terms

// Rollout is what a round has besides the units that learn: units with the indexes after theirs, which draw answers
// with the parameters that the round starts from. A unit that learns in a round reads those of the round Policy. So
// units that draw are due when their answers are read, and not when their round ends.
type Rollout struct {
	Units     uint32 `cbor:"1,keyasint"` // that draw in a round: the same number for each unit that learns
	Staleness uint32 `cbor:"2,keyasint"` // by how many rounds the policy of the answers is older, at most
	Flops     uint64 `cbor:"3,keyasint"` // floating-point operations of a unit that draws
	// A unit that learns reads what is drawn for all units, and not for itself alone.
	Shared bool `cbor:"4,keyasint,omitempty"`
}

// MaxStaleness bounds Rollout.Staleness: rounds stay open until no later one reads their answers.
const MaxStaleness = 4

// drawn reports whether the terms have units that draw as they must be.
func (t Terms) drawn() bool {
	r := t.Rollout
	return r.Units > 0 && r.Units%t.Units == 0 && t.Units+r.Units <= MaxUnits && r.Staleness <= MaxStaleness &&
		r.Flops > 0 && t.Carry == 0 && t.Sizes == nil && t.Tolerance.DistancePPM == 0 && t.Screen < ScreenLosses &&
		!t.Overlap && !t.Sliced() && t.Window > r.Staleness+1 && uint64(t.Window)*uint64(t.Units+r.Units) <= MaxOpen
}

// Draws reports whether units draw in a round: those whose answers no round reads do not.
func (t Terms) Draws(round uint32) bool {
	return t.Rollout.Units > 0 && (round == 0 || round+t.Rollout.Staleness < t.Rounds)
}

// Policy is the round whose units have drawn what a round learns from.
func (t Terms) Policy(round uint32) uint32 { return round - min(round, t.Rollout.Staleness) }

// IsDrawing reports whether a unit draws.
func (t Terms) IsDrawing(unit uint32) bool { return t.Rollout.Units > 0 && unit >= t.Units }

// DrawnFor lists the units that draw what a unit learns from: for each of its steps the one that draws for itself, and
// then, where it reads what is drawn for others, those that draw for the units after it, and for those before it.
func (t Terms) DrawnFor(unit uint32) (list []uint32) {
	each, read := t.Rollout.Units/t.Units, uint32(1)
	if t.Rollout.Shared {
		read = t.Units
	}
	for step := range each {
		for k := range read {
			list = append(list, t.Units+(unit+k)%t.Units*each+step)
		}
	}
	return list
}
