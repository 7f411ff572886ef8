package strategy

import (
	"errors"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
)

// Apart refuses answers that are drawn apart for units which carry a state. The error is a *problem.ErrorList.
func Apart(j *job.Job) error {
	x := Exchange(j.Spec)
	if !j.Rollout.Apart() || !x.CarriesState() && !x.Replicas() {
		return nil
	}
	at, or := "rollout.staleness", "staleness: 0"
	if j.Rollout.Swarm() {
		at, or = "rollout.sharing", "sharing: none"
	}
	return j.Refuse(at, problem.Unsupported, "answers cannot be drawn apart with this strategy",
		errors.New("its units carry a state from round to round, or are replicas"),
		"use strategy.method: fedavg or diloco without error feedback, moments that last and rounds that overlap, or "+or)
}
