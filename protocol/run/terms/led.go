package terms

// led reports whether terms of a run that its consumer leads are as they must be. A round of it is one step of one
// loop, and so one unit.
func (t Terms) led() bool {
	return t.Led >= MinBlocks && t.Led <= MaxBlocks && t.Units == 1 && t.Carry == 0 && t.Sizes == nil &&
		t.Rollout.Units == 0 && len(t.Pipeline.Flops) == 0 && t.Tolerance.DistancePPM == 0 && t.Screen < ScreenLosses &&
		!t.Overlap && !t.Sliced()
}
