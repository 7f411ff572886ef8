package run

// The names of the packages below this one that a run is told in.

import "github.com/starling-network/starling/protocol/run/terms"

type (
	Terms      = terms.Terms
	Screen     = terms.Screen
	Deadlines  = terms.Deadlines
	Checkpoint = terms.Checkpoint
	Tolerance  = terms.Tolerance
)

const (
	MaxSlices     = terms.MaxSlices
	MaxRounds     = terms.MaxRounds
	MaxUnits      = terms.MaxUnits
	MaxMembers    = terms.MaxMembers
	MaxSegments   = terms.MaxSegments
	MaxWindow     = terms.MaxWindow
	MaxOpen       = terms.MaxOpen
	MaxCID        = terms.MaxCID
	ScreenOff     = terms.ScreenOff
	ScreenUpdates = terms.ScreenUpdates
	ScreenLosses  = terms.ScreenLosses
	MinBlocks     = terms.MinBlocks
	MaxBlocks     = terms.MaxBlocks
	MaxID         = terms.MaxID
	MaxKey        = terms.MaxKey
)
