package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
)

// tuningID begins the identifiers of runs that tune models: OpenAI's clients know them by the same.
const tuningID = "ftjob-"

// Pages of the lists of jobs, events and checkpoints, in OpenAI's form.
const (
	defaultJobs        = 20
	defaultCheckpoints = 10
	maxJobFile         = 1 << 20
)

// createTuning submits a job. Its identifier is its key too: the same Idempotency-Key gives the same job, and a job
// that stopped goes on by its identifier alone.
func (s *Server) createTuning(r *http.Request) (any, error) {
	if s.Tuner == nil || s.Launcher == nil {
		return nil, errNoFiles
	}
	id := tuningID + newID()
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		sum := sha256.Sum256([]byte(key))
		id = tuningID + hex.EncodeToString(sum[:8])
	}
	var asked api.FineTuningRequest
	if err := decode(r, &asked); err != nil {
		return nil, err
	}
	spec, err := s.Tuner.Job(asked)
	if err != nil {
		return nil, err
	}
	run, err := s.Launcher.Submit(r.Context(), id, api.Submission{Spec: spec, Name: id})
	if err != nil {
		return nil, err
	}
	return s.tuning(r, run)
}

// resumeTuning submits a job again that stopped.
func (s *Server) resumeTuning(r *http.Request) (any, error) {
	if s.Tuner == nil || s.Launcher == nil {
		return nil, errNoFiles
	}
	id := r.PathValue("id")
	if _, err := s.tuning(r, id); err != nil {
		return nil, err
	}
	f, _, err := s.Runs.Open(r.Context(), id, "job.yaml")
	if err != nil {
		return nil, err
	}
	source, err := io.ReadAll(io.LimitReader(f, maxJobFile))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if _, err := s.Launcher.Submit(r.Context(), id,
		api.Submission{Spec: api.Spec{Config: string(source)}, Name: id}); err != nil {
		return nil, err
	}
	return s.tuning(r, id)
}

func (s *Server) cancelTuning(r *http.Request) (any, error) { return s.stopTuning(r, Launcher.Cancel) }

func (s *Server) pauseTuning(r *http.Request) (any, error) { return s.stopTuning(r, Launcher.Pause) }

// stopTuning stops a job in one of two ways.
func (s *Server) stopTuning(r *http.Request, stop func(Launcher, context.Context, string) error) (any, error) {
	if s.Tuner == nil || s.Launcher == nil {
		return nil, errNoFiles
	}
	id := r.PathValue("id")
	if _, err := s.tuning(r, id); err != nil {
		return nil, err
	}
	if err := stop(s.Launcher, r.Context(), id); err != nil {
		return nil, err
	}
	return s.tuning(r, id)
}

func (s *Server) oneTuning(r *http.Request) (any, error) {
	return s.tuning(r, r.PathValue("id"))
}

// tuning is a job by its identifier.
func (s *Server) tuning(r *http.Request, id string) (j api.FineTuningJob, err error) {
	asked, h, err := s.tuningHistory(r, id)
	if err != nil {
		return j, err
	}
	return tuningJob(h.Job, asked), nil
}

// tuningHistory is what was asked for with a job, and what came of it.
func (s *Server) tuningHistory(r *http.Request, id string) (asked api.FineTuningRequest, h *History, err error) {
	err = ErrNotFound
	if s.Tuner != nil && strings.HasPrefix(id, tuningID) {
		asked, err = s.Tuner.Request(id)
	}
	if err == nil {
		h, err = s.Runs.History(r.Context(), id)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return asked, nil, &Failure{Status: http.StatusNotFound, Code: "NOT_FOUND",
			Detail: "there is no such fine-tuning job", Fix: "GET /v1/fine_tuning/jobs lists what there is",
			Param: "fine_tuning_job_id"}
	case err != nil:
		return asked, nil, err
	}
	return asked, h, nil
}

// tuningJob is a run in OpenAI's form.
func tuningJob(run api.Job, r api.FineTuningRequest) api.FineTuningJob {
	j := api.FineTuningJob{ID: run.ID, Object: "fine_tuning.job", CreatedAt: run.Started.Unix(), Model: r.Model,
		OrganizationID: "starling", ResultFiles: []string{}, TrainingFile: r.TrainingFile,
		Hyperparameters: r.Hyperparameters,
		Method: api.TuningMethod{Type: "supervised",
			Supervised: api.SupervisedMethod{Hyperparameters: r.Hyperparameters}}, Seed: *r.Seed,
		Metadata: r.Metadata, Integrations: []api.Integration{}}
	if j.Metadata == nil {
		j.Metadata = map[string]string{}
	}
	if r.ValidationFile != "" {
		j.ValidationFile = &r.ValidationFile
	}
	if r.Suffix != "" {
		j.Suffix = &r.Suffix
	}
	why := run.Reason
	switch {
	case run.State == "queued" || run.State == "running":
		j.Status = run.State
		if run.SecondsLeft > 0 {
			end := time.Now().Unix() + int64(run.SecondsLeft)
			j.EstimatedFinish = &end
		}
		return j
	case run.State == "done" && why == nil:
		name := r.Tuned(run.ID)
		j.Status, j.FineTunedModel, j.TrainedTokens = "succeeded", &name, &run.Tokens
	case run.State == "stopped" && why != nil && why.Code == "cancelled":
		j.Status, why = "cancelled", nil
	case run.State == "stopped":
		j.Status = "paused"
	default: // failed, halted, or done with what diverged
		j.Status = "failed"
	}
	if j.Status != "paused" {
		end := run.Updated.Unix()
		j.FinishedAt = &end
		if run.Round > 0 {
			j.ResultFiles = []string{resultID(run.ID)}
		}
	}
	if why != nil {
		text := why.Text
		switch {
		case j.Status == "paused":
			text += ": POST /v1/fine_tuning/jobs/" + run.ID + "/resume has it go on"
		case why.Next != "":
			text += ": " + why.Next
		}
		code := strings.ToLower(why.Code)
		j.Error = &api.OpenAIProblem{Message: text, Type: "server_error", Code: &code}
	}
	return j
}

func (s *Server) listTunings(r *http.Request) (any, error) {
	l := api.FineTuningJobs{Object: "list", Data: []api.FineTuningJob{}}
	all, err := s.Runs.List(r.Context())
	if err != nil || s.Tuner == nil {
		return l, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(j api.Job) bool { return !strings.HasPrefix(j.ID, tuningID) })
	page, more, err := following(r, all, defaultJobs, func(j api.Job) string { return j.ID })
	if err != nil {
		return nil, err
	}
	for _, run := range page {
		if asked, err := s.Tuner.Request(run.ID); err == nil {
			l.Data = append(l.Data, tuningJob(run, asked))
		}
	}
	l.HasMore = more
	return l, nil
}

// tunes reports whether a job that is not over needs a file.
func (s *Server) tunes(r *http.Request, file string) (id string, err error) {
	return s.tuningWith(r, func(asked api.FineTuningRequest) bool {
		return asked.TrainingFile == file || asked.ValidationFile == file
	})
}

// tuningWith is a job that is not over and was asked for with something, or "".
func (s *Server) tuningWith(r *http.Request, with func(api.FineTuningRequest) bool) (id string, err error) {
	if s.Tuner == nil {
		return "", nil
	}
	all, err := s.Runs.List(r.Context())
	if err != nil {
		return "", err
	}
	for _, run := range all {
		if run.State != "queued" && run.State != "running" || !strings.HasPrefix(run.ID, tuningID) {
			continue
		}
		if asked, err := s.Tuner.Request(run.ID); err == nil && with(asked) {
			return run.ID, nil
		}
	}
	return "", nil
}

// progress are the metrics of the rounds of a run, and when they ended: as their records say, or, where those do not,
// as far as their lengths tell.
func progress(h *History) (rounds []api.TuningMetrics, at []int64) {
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

func (s *Server) tuningEvents(r *http.Request) (any, error) {
	asked, h, err := s.tuningHistory(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	j := tuningJob(h.Job, asked)
	events := []api.FineTuningEvent{}
	add := func(at int64, level, kind, message string, data *api.TuningMetrics) {
		id := fmt.Sprintf("ftevent-%s-%d", strings.TrimPrefix(j.ID, tuningID), len(events))
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
	l.Data, l.HasMore, err = following(r, events, defaultJobs, func(e api.FineTuningEvent) string { return e.ID })
	return l, err
}

func (s *Server) tuningCheckpoints(r *http.Request) (any, error) {
	asked, h, err := s.tuningHistory(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	j := tuningJob(h.Job, asked)
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
		list = append(list, api.FineTuningCheckpoint{ID: fmt.Sprintf("ftckpt-%s-%d", strings.TrimPrefix(j.ID, tuningID),
			c.Round), Object: "fine_tuning.job.checkpoint", CreatedAt: at[c.Round-1],
			Job: j.ID, Model: name, Step: m.Step, Metrics: m, StateRoot: c.StateRoot})
	}
	slices.Reverse(list)
	l := api.FineTuningCheckpoints{Object: "list"}
	l.Data, l.HasMore, err = following(r, list, defaultCheckpoints,
		func(c api.FineTuningCheckpoint) string { return c.ID })
	if n := len(l.Data); n > 0 {
		l.FirstID, l.LastID = &l.Data[0].ID, &l.Data[n-1].ID
	}
	return l, err
}
