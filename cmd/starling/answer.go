package main

import (
	"strings"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/recommend"
)

// simAnswer goes by its folder, or without one by the state root in which it ended.
func simAnswer(done []variant, dirs []string, swept bool) terminal.Answer {
	if !swept {
		return terminal.One(done[0].Simulation, simName(done[0], dirs, 0))
	}
	at := -1
	return terminal.Items("simulations", done, func(v variant) string { at++; return simName(v, dirs, at) })
}

func simName(v variant, dirs []string, i int) string {
	if i < len(dirs) {
		return dirs[i]
	}
	return v.StateRoot.String()
}

// adviceAnswer is about candidates, which xargs starling train takes as settings.
func adviceAnswer(a *recommend.Ranking) terminal.Answer {
	return terminal.List(a, a.Candidates,
		func(c recommend.Candidate) string { return "--set '" + strings.Join(c.Set, "' --set '") + "'" })
}
