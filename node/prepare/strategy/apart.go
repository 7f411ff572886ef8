package strategy

import (
	"errors"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
)

// Apart refuses answers that are drawn apart for units which carry a state. The error is a *problem.ErrorList.
func Apart(j *job.Job) error {
	x := Exchange(j.Spec)
	if j.Rollout.Staleness == 0 || !x.CarriesState() && !x.Replicas() {
		return nil
	}
	return j.Refuse("rollout.staleness", problem.Unsupported, "answers cannot be drawn apart with this strategy",
		errors.New("its units carry a state from round to round, or are replicas"),
		"use strategy.method: fedavg or diloco without error feedback, moments that last and rounds that overlap, or "+
			"staleness: 0")
}
