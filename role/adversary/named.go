package adversary

import (
	"maps"
	"slices"
)

// named are the acts that a researcher can ask for by name.
var named = map[string]Act{
	"skips":          Skips{},
	"trains-less":    TrainsLess{Steps: 1},
	"wrong-data":     WrongData{},
	"wrong-rate":     WrongRate{Factor: 2},
	"copies":         Copies{},
	"copies-changed": CopiesChanged{},
	"flips-bit":      FlipsBit{Step: 1},
	"poisons":        Poisons{Factor: -10},
	"equivocates":    Equivocates{},
	"silent":         GoesSilent{},
	"misattests":     Misattests{},
	"stamps":         Stamps{},
	"tampers-state":  TampersState{},
	"accuses":        Accuses{Segment: 1, Manner: ToTheLeaf},
}

// Named returns the act with a name.
func Named(name string) (Act, bool) {
	a, ok := named[name]
	return a, ok
}

// Names lists the names that Named knows, in order. "accuses" and "stamps" are for verifiers.
func Names() []string { return slices.Sorted(maps.Keys(named)) }
