package committee

// Terms that a host has unless it says otherwise. starling bench privacy measures committees with them.
const (
	UsualDrawn    = 8     // members of a round, at most
	UsualWindow   = 5     // rounds of a median
	UsualPanel    = 7     // evaluators of a round
	UsualExamples = 1_000 // of the set of a round, at most
)
