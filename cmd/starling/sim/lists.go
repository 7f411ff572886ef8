package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/role/adversary/catalog"
	"github.com/starling-network/starling/sim/link"
)

// LinkNames are the links that have names, and how one that is described begins.
func LinkNames() (names []string) {
	for _, p := range profiles() {
		names = append(names, p.Name)
	}
	return append(names, "up=")
}

// listCommand is a command that lists what the program itself knows.
func listCommand[T any](c *terminal.Console, use, short, long, example, key string, known func() []T,
	name func(T) string,
	titles []string, row func(T) []any) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: usage.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			return terminal.PrintList(c.Form, key, known(), name, titles, row)
		},
	}
}

// method is a strategy as a method of a job file stands for it.
type method struct {
	Name        string  `json:"name"`
	Optimizer   string  `json:"outer_optimizer"`
	Rate        float64 `json:"lr"`
	Compression string  `json:"compression"`
	Rule        string  `json:"aggregation"`
	Proximal    float64 `json:"proximal_mu,omitempty"`
	Gradients   bool    `json:"gradients"` // a round is one step
}

func methods() (all []method) {
	for _, s := range spec.Methods() {
		m := method{Name: s.Method, Optimizer: s.OuterOptimizer.Name, Rate: s.OuterOptimizer.LR,
			Compression: s.Compression.Quantize, Rule: s.Aggregation.Rule, Proximal: s.ProximalMu,
			Gradients: s.OuterOptimizer.Gradients()}
		if k, _, sparse := s.Compression.TopK(); sparse {
			m.Compression = fmt.Sprintf("largest %d of 4096, %s", k, s.Compression.Quantize)
		}
		if s.Compression.Transform != "none" {
			m.Compression += " of " + s.Compression.Transform
		}
		if s.Compression.ErrorFeedback {
			m.Compression += ", error feedback"
		}
		switch r := s.Replicas; {
		case r.Paired():
			m.Compression += ", in pairs"
		case r.Sample > 0:
			m.Compression += fmt.Sprintf(", of 1 of %d elements in %d of %d rounds", r.Sample, r.Rounds-1, r.Rounds)
		case r.Fragments > 0:
			m.Compression += fmt.Sprintf(", of 1 of %d fragments in %d of %d rounds", r.Fragments, r.Rounds-1, r.Rounds)
		}
		if s.Replicas.Overlap > 0 {
			m.Compression += ", rounds overlap"
		}
		all = append(all, m)
	}
	return all
}

func strategiesCommand(c *terminal.Console) *cobra.Command {
	return listCommand(c, "strategies", "List the methods that strategy.method names", `List the methods that
strategy.method of a job file names, with the keys that each sets unless the file does. docs/strategies.md says what
their parts cost and bear; starling sim JOB.yaml --advise ranks them for a job and its links.

With -o json: {"strategies":[{"name","outer_optimizer","lr","compression","aggregation","proximal_mu","gradients"}]}.`,
		`  starling sim strategies
  starling sim job.yaml --sweep strategy.method=$(starling sim strategies -o name | paste -sd,)`,
		"strategies", methods, func(m method) string { return m.Name },
		[]string{"METHOD", "OUTER OPTIMIZER", "LR", "COMPRESSION", "AGGREGATION", "ROUND"},
		func(m method) []any {
			round := "many inner steps"
			if m.Gradients {
				round = "one step"
			}
			return []any{m.Name, m.Optimizer, m.Rate, m.Compression, strings.ReplaceAll(m.Rule, "_", " "), round}
		})
}

// attack is a way to break the rules.
type attack struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func attacks() (all []attack) {
	for _, name := range catalog.Names() {
		all = append(all, attack{name, catalog.About(name)})
	}
	return all
}

func attacksCommand(c *terminal.Console) *cobra.Command {
	return listCommand(c, "attacks", "List what those who break the rules can do", `List the acts that --act gives a party
of a simulation. docs/security.md says what each meets.

With -o json: {"attacks":[{"name","about"}]}.`, `  starling sim attacks
  starling sim job.yaml --act worker-1=$(starling sim attacks -o name | head -1)`,
		"attacks", attacks, func(a attack) string { return a.Name }, []string{"ACT", "IT IS"},
		func(a attack) []any { return []any{a.Name, a.About} })
}

// profile is a link that has a name.
type profile struct {
	Name    string  `json:"name"`
	Latency float64 `json:"latency_seconds"` // one way
	Up      float64 `json:"up_mbit"`         // 10^6 bits a second
	Down    float64 `json:"down_mbit"`
	Loss    float64 `json:"loss"`
}

func profiles() (all []profile) {
	const bits = 8. / 1e6
	for _, name := range slices.SortedFunc(maps.Keys(link.Profiles), func(a, b string) int {
		return cmp.Or(cmp.Compare(link.Profiles[a].Latency, link.Profiles[b].Latency), cmp.Compare(a, b))
	}) {
		l := link.Profiles[name]
		all = append(all, profile{name, l.Latency.Seconds(), l.Up * bits, l.Down * bits, l.Loss})
	}
	return all
}

func networksCommand(c *terminal.Console) *cobra.Command {
	return listCommand(c, "networks", "List the links that have names", `List the links that --link of a simulation knows
by name. Others are given as settings: up=20,down=100,latency=50ms,loss=0.01.

With -o json: {"networks":[{"name","latency_seconds","up_mbit","down_mbit","loss"}]}.`, `  starling sim networks
  starling sim job.yaml --link bad`,
		"networks", profiles, func(p profile) string { return p.Name }, []string{"LINK", "LATENCY", "UP", "DOWN", "LOSS"},
		func(p profile) []any {
			return []any{p.Name, time.Duration(p.Latency * float64(time.Second)), fmt.Sprintf("%g Mbit/s", p.Up),
				fmt.Sprintf("%g Mbit/s", p.Down), p.Loss}
		})
}
