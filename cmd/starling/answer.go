package main

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/recommend"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/market"
)

// earningsAnswer is about receipts of many jobs: a name is a job and a number.
func earningsAnswer(account string, received, lost uint64, found []rundir.Explanation) terminal.Answer {
	if found == nil {
		found = []rundir.Explanation{}
	}
	whole := map[string]any{"account": account, "received_uzen": received, "lost_uzen": lost, "receipts": found}
	return terminal.List(whole, found, func(e rundir.Explanation) string { return fmt.Sprintf("%s %d", e.Job, e.Seq) })
}

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

// offered is an offer as it is matched, for programs.
type offered struct {
	ID           string `json:"id"`
	Role         string `json:"role"`
	Price        uint64 `json:"price"` // uzen per 10^15 floating-point operations
	Slots        uint32 `json:"slots"`
	Since        int64  `json:"since"` // height
	Class        string `json:"class"`
	Tier         string `json:"tier"`
	Memory       uint64 `json:"memory_mib"`
	Upload       uint64 `json:"upload_kbps"`
	Disk         uint64 `json:"disk_mib"`
	Cores        uint32 `json:"cpus"`
	Devices      uint32 `json:"accelerators"`
	Model        string `json:"accelerator_model,omitempty"`
	Passed       uint32 `json:"audits_passed"`
	Region       string `json:"region"`
	Jurisdiction string `json:"jurisdiction"`
	Domain       string `json:"domain"`
	Attested     bool   `json:"attested"`
	Rate         uint64 `json:"rate"`       // operations a second; 0: not measured
	Latency      uint32 `json:"latency_ms"` // 0: not measured
	Cover        uint64 `json:"cover_uzen"` // price of the work that its stake may still stand behind
}

func offersOf(lots []market.Lot) []offered {
	lines := make([]offered, len(lots))
	for i, l := range lots {
		lines[i] = offered{
			ID: l.ID, Role: l.Role.String(), Price: l.Price, Slots: l.Slots, Since: l.At, Class: l.Class.String(),
			Tier: l.Tier.String(), Memory: l.Memory,
			Upload: l.Upload, Disk: l.Disk, Cores: l.Cores, Devices: l.Devices, Model: l.Model, Passed: l.Passed,
			Region: l.Region, Jurisdiction: l.Jurisdiction, Domain: l.Domain, Attested: l.Attested, Rate: l.Rate,
			Latency: l.Latency, Cover: l.Cover,
		}
	}
	return lines
}

// ordered is an open order, for programs.
type ordered struct {
	Job       string `json:"job"`
	Consumer  string `json:"consumer"`
	Budget    uint64 `json:"budget_uzen"`
	PriceCap  uint64 `json:"price_cap"`
	Workers   uint32 `json:"workers"` // at least
	Most      uint32 `json:"most_workers"`
	Verifiers uint32 `json:"verifiers"`
	Since     int64  `json:"since"`   // height
	Expires   int64  `json:"expires"` // height; 0: never
	Why       string `json:"why"`
}

func ordersOf(orders []client.Placed) []ordered {
	lines := make([]ordered, len(orders))
	for i, o := range orders {
		lines[i] = ordered{Job: o.ID, Consumer: o.Consumer, Budget: o.Budget, PriceCap: o.PriceCap, Workers: o.Workers.Min,
			Most: o.Workers.Max, Verifiers: o.Verifiers, Since: o.At, Expires: o.Deadline, Why: o.Why}
	}
	return lines
}
