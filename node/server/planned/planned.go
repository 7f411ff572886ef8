// Package planned writes plans of jobs in the form of the API. The plans are made by node/plan.
package planned

import (
	"fmt"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Here is a plan in the form of the API, as far as it does not depend on where the job is trained.
func Here(p *plan.Plan, j *job.Job) api.Plan {
	return api.Plan{ID: p.ID, Name: p.Name, Steps: p.Steps, Rounds: p.Rounds, Workers: p.Workers, Tokens: p.Tokens,
		Flops: p.Flops, Parameters: p.Parameters, DiskBytes: p.Disk, RoundBytes: p.Received, CostUzen: p.Most,
		BudgetUzen: p.Budget, Coin: coins.Shown(p.Coin), Facts: runs.Facts(j),
		Notes: p.Notes, StepSeconds: p.StepTime, MemoryBytes: p.Memory,
		Rejections: []api.Rejection{}}
}

// OnNetwork is a plan for a network: the members that can be drawn there, and why others cannot be.
func OnNetwork(p *plan.Plan, j *job.Job) api.Plan {
	made, q := Here(p, j), p.Quote
	made.Seconds, made.Placement.Fits = float64(q.Seconds), "yes"
	if q.Matched {
		made.CostUzen = q.Whole
	} else {
		made.Placement.Fits = "no"
		made.Notes = append(made.Notes, "the order would wait: "+q.Why.Text())
	}
	for _, m := range q.Members {
		if m.Role == crew.Verifier.String() {
			made.Placement.Verifiers++
		} else {
			made.Placement.Workers++
		}
	}
	for _, o := range q.Others {
		made.Rejections = append(made.Rejections, api.Rejection{ID: o.ID, Why: string(o.Why),
			Text: fmt.Sprintf("its offer as a %s cannot be taken: %s", o.Role, o.Text)})
	}
	return made
}
