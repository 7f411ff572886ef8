package rules

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/rollout"
)

// Drawn says how the answers of a job are drawn, which are rewarded so.
func Drawn(j *job.Job, reward rollout.Reward) model.Rollout {
	r := j.Rollout
	d := model.Rollout{Group: r.Group, Tokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP, KL: r.KL,
		Reward: reward}
	if r.Apart() {
		d.Apart, d.Correction = j.Strategy.SyncSteps, rollout.Correction(r.Correction)
	}
	if r.Swarm() && r.Shared > 0 {
		d.Others, d.Shared = j.Strategy.Workers.Target-1, r.Shared
	}
	if r.Game() {
		d.Stages, d.Reads, d.Across = r.Stages, r.Reads, r.Across()
	}
	return d
}
