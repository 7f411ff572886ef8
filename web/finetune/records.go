package finetune

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/source"
)

// progress are the metrics of the rounds of a run, and when they ended: as their records say, or, where those do not,
// as far as their lengths tell.
func progress(h *source.History) (rounds []api.TuningMetrics, at []int64) {
	end := float64(h.Job.Started.Unix())
	for _, m := range h.Metrics {
		if m.Kind == "round" && m.Round > 0 {
			end += m.Seconds
			if !m.Time.IsZero() {
				end = float64(m.Time.Unix())
			}
			rounds = append(rounds, api.TuningMetrics{Step: int(m.Step), TrainLoss: m.Loss, ValidLoss: m.EvalLoss})
			at = append(at, int64(end))
		}
	}
	return rounds, at
}

func (a *API) events(r *http.Request) (any, error) {
	asked, h, err := a.history(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	j := jobOf(h.Job, asked)
	events := []api.FineTuningEvent{}
	add := func(at int64, level, kind, message string, data *api.TuningMetrics) {
		id := fmt.Sprintf("ftevent-%s-%d", strings.TrimPrefix(j.ID, idPrefix), len(events))
		events = append(events, api.FineTuningEvent{ID: id, Object: "fine_tuning.job.event", CreatedAt: at, Level: level,
			Message: message, Type: kind, Data: data})
	}
	add(j.CreatedAt, "info", "message", "Created fine-tuning job: "+j.ID, nil)
	rounds, at := progress(h)
	for i, m := range rounds {
		text := fmt.Sprintf("Step %d/%d: training loss=%.4f", m.Step, h.Job.Steps, m.TrainLoss)
		if m.ValidLoss != nil {
			text += fmt.Sprintf(", validation loss=%.4f", *m.ValidLoss)
		}
		add(at[i], "info", "metrics", text, &m)
	}
	switch end := h.Job.Updated.Unix(); j.Status {
	case "succeeded":
		add(end, "info", "message", "New fine-tuned model created: "+*j.FineTunedModel, nil)
	case "cancelled":
		add(end, "info", "message", "The job was cancelled", nil)
	case "failed":
		add(end, "error", "message", j.Error.Message, nil)
	case "paused":
		add(end, "warn", "message", j.Error.Message, nil)
	}
	slices.Reverse(events)
	l := api.FineTuningEvents{Object: "list"}
	l.Data, l.HasMore, err = request.After(r, events, defaultJobs, func(e api.FineTuningEvent) string { return e.ID })
	return l, err
}

func (a *API) checkpoints(r *http.Request) (any, error) {
	asked, h, err := a.history(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	j := jobOf(h.Job, asked)
	rounds, at := progress(h)
	list := []api.FineTuningCheckpoint{}
	for _, c := range h.Lineage {
		if c.Round < 1 || c.Round > len(rounds) {
			continue
		}
		m := rounds[c.Round-1]
		name := fmt.Sprintf("%s:ckpt-step-%d", asked.Tuned(j.ID), m.Step)
		if j.FineTunedModel != nil && m.Step == h.Job.Step {
			name = *j.FineTunedModel
		}
		list = append(list, api.FineTuningCheckpoint{ID: fmt.Sprintf("ftckpt-%s-%d", strings.TrimPrefix(j.ID, idPrefix),
			c.Round), Object: "fine_tuning.job.checkpoint", CreatedAt: at[c.Round-1],
			Job: j.ID, Model: name, Step: m.Step, Metrics: m, StateRoot: c.StateRoot})
	}
	slices.Reverse(list)
	l := api.FineTuningCheckpoints{Object: "list"}
	l.Data, l.HasMore, err = request.After(r, list, defaultCheckpoints,
		func(c api.FineTuningCheckpoint) string { return c.ID })
	if n := len(l.Data); n > 0 {
		l.FirstID, l.LastID = &l.Data[0].ID, &l.Data[n-1].ID
	}
	return l, err
}
