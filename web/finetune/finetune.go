// Package finetune is the part of the API that tunes models in OpenAI's form: jobs with their events, checkpoints and
// files of results. A job is a run of the server under an identifier of OpenAI's form. source.Tuner writes its job
// file; nothing here trains. The files of examples are in web/examples.
package finetune

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/source"
)

// API answers about the fine-tuning jobs of a server.
type API struct {
	Runs     source.Runs
	Launcher source.Launcher // nil: no job is started
	Tuner    source.Tuner    // nil: there are no jobs
}

// Routes are the operations of fine-tuning jobs.
func (a *API) Routes() []route.Route {
	return []route.Route{
		{Method: "POST", Path: "/v1/fine_tuning/jobs", Scope: access.Submit,
			Summary: "Submit a job that tunes a model with a file of examples; OpenAI's form", Body: api.FineTuningRequest{},
			Answer: api.FineTuningJob{}, Timeout: route.PlanTimeout, Handle: a.create},
		{Method: "GET", Path: "/v1/fine_tuning/jobs", Scope: access.Read,
			Summary: "The jobs that tune models, the latest first; OpenAI's form", Answer: api.FineTuningJobs{},
			Handle: a.list, Params: request.ListParams},
		{Method: "GET", Path: "/v1/fine_tuning/jobs/{id}", Scope: access.Read,
			Summary: "A job that tunes a model; OpenAI's form", Answer: api.FineTuningJob{}, Handle: a.one},
		{Method: "POST", Path: "/v1/fine_tuning/jobs/{id}/cancel", Scope: access.Submit,
			Summary: "Stop a job that tunes a model; OpenAI's form",
			Answer:  api.FineTuningJob{}, Handle: a.cancel},
		{Method: "POST", Path: "/v1/fine_tuning/jobs/{id}/pause", Scope: access.Submit,
			Summary: "Stop a job that tunes a model until it is resumed; OpenAI's form",
			Answer:  api.FineTuningJob{}, Handle: a.pause},
		{Method: "POST", Path: "/v1/fine_tuning/jobs/{id}/resume", Scope: access.Submit,
			Summary: "Resume a stopped job from its last attested checkpoint; OpenAI's form",
			Answer:  api.FineTuningJob{}, Handle: a.resume},
		{Method: "GET", Path: "/v1/fine_tuning/jobs/{id}/events", Scope: access.Read,
			Summary: "What happened to a job, the latest first; OpenAI's form", Answer: api.FineTuningEvents{},
			Handle: a.events, Params: request.ListParams},
		{Method: "GET", Path: "/v1/fine_tuning/jobs/{id}/checkpoints", Scope: access.Read,
			Summary: "The attested checkpoints of a job, the latest first; OpenAI's form",
			Answer:  api.FineTuningCheckpoints{}, Handle: a.checkpoints, Params: request.ListParams},
	}
}

// idPrefix begins the identifiers of runs that tune models: OpenAI's clients know them by the same.
const idPrefix = "ftjob-"

// Pages of the lists of jobs, events and checkpoints, in OpenAI's form.
const (
	defaultJobs        = 20
	defaultCheckpoints = 10
	maxJobFile         = 1 << 20
)

// create submits a job. Its identifier is its key, too: the same Idempotency-Key gives the same job, and a job that
// stopped is resumed by its identifier alone.
func (a *API) create(r *http.Request) (any, error) {
	if a.Tuner == nil || a.Launcher == nil {
		return nil, failure.ErrSubmissionOff
	}
	id := idPrefix + request.NewID()
	if key := r.Header.Get(request.KeyHeader); key != "" {
		sum := sha256.Sum256([]byte(key))
		id = idPrefix + hex.EncodeToString(sum[:8])
	}
	var asked api.FineTuningRequest
	if err := request.Decode(r, &asked); err != nil {
		return nil, err
	}
	spec, err := a.Tuner.Job(asked)
	if err != nil {
		return nil, err
	}
	run, err := a.Launcher.Submit(r.Context(), id, api.Submission{Spec: spec, Name: id})
	if err != nil {
		return nil, err
	}
	return a.job(r.Context(), run)
}

// resume submits a job again that stopped.
func (a *API) resume(r *http.Request) (any, error) {
	if a.Tuner == nil || a.Launcher == nil {
		return nil, failure.ErrSubmissionOff
	}
	id := r.PathValue("id")
	if _, err := a.job(r.Context(), id); err != nil {
		return nil, err
	}
	f, _, err := a.Runs.Open(r.Context(), id, "job.yaml")
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxJobFile))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if _, err := a.Launcher.Submit(r.Context(), id,
		api.Submission{Spec: api.Spec{Config: string(text)}, Name: id}); err != nil {
		return nil, err
	}
	return a.job(r.Context(), id)
}

func (a *API) cancel(r *http.Request) (any, error) { return a.stop(r, source.Launcher.Cancel) }

func (a *API) pause(r *http.Request) (any, error) { return a.stop(r, source.Launcher.Pause) }

// stop stops a job in one of two ways.
func (a *API) stop(r *http.Request, stop func(source.Launcher, context.Context, string) error) (any, error) {
	if a.Tuner == nil || a.Launcher == nil {
		return nil, failure.ErrSubmissionOff
	}
	id := r.PathValue("id")
	if _, err := a.job(r.Context(), id); err != nil {
		return nil, err
	}
	if err := stop(a.Launcher, r.Context(), id); err != nil {
		return nil, err
	}
	return a.job(r.Context(), id)
}

func (a *API) one(r *http.Request) (any, error) {
	return a.job(r.Context(), r.PathValue("id"))
}

// job is a job by its identifier.
func (a *API) job(ctx context.Context, id string) (j api.FineTuningJob, err error) {
	asked, h, err := a.history(ctx, id)
	if err != nil {
		return j, err
	}
	return jobOf(h.Job, asked), nil
}

// history is what was asked for with a job, and what came of it.
func (a *API) history(ctx context.Context, id string) (asked api.FineTuningRequest, h *source.History, err error) {
	err = failure.ErrNotFound
	if a.Tuner != nil && strings.HasPrefix(id, idPrefix) {
		asked, err = a.Tuner.Request(id)
	}
	if err == nil {
		h, err = a.Runs.History(ctx, id)
	}
	switch {
	case errors.Is(err, failure.ErrNotFound):
		return asked, nil, &failure.Error{Status: http.StatusNotFound, Code: "NOT_FOUND",
			Detail: "there is no such fine-tuning job", Fix: "GET /v1/fine_tuning/jobs lists what there is",
			Param: "fine_tuning_job_id"}
	case err != nil:
		return asked, nil, err
	}
	return asked, h, nil
}

// jobOf is a run in OpenAI's form.
func jobOf(run api.Job, r api.FineTuningRequest) api.FineTuningJob {
	j := api.FineTuningJob{ID: run.ID, Object: "fine_tuning.job", CreatedAt: run.Started.Unix(), Model: r.Model,
		OrganizationID: "starling", ResultFiles: []string{}, TrainingFile: r.TrainingFile,
		Hyperparameters: r.Hyperparameters,
		Method: api.TuningMethod{Type: "supervised",
			Supervised: api.SupervisedMethod{Hyperparameters: r.Hyperparameters}}, Seed: *r.Seed,
		Metadata: r.Metadata, Integrations: []api.Integration{}}
	if r.Method != nil {
		j.Method = *r.Method
	}
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
	default: // failed, halted, or done with a diverged model
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
			text += ": POST /v1/fine_tuning/jobs/" + run.ID + "/resume resumes it"
		case why.Next != "":
			text += ": " + why.Next
		}
		code := strings.ToLower(why.Code)
		j.Error = &api.OpenAIProblem{Message: text, Type: "server_error", Code: &code}
	}
	return j
}

func (a *API) list(r *http.Request) (any, error) {
	l := api.FineTuningJobs{Object: "list", Data: []api.FineTuningJob{}}
	all, err := a.Runs.List(r.Context())
	if err != nil || a.Tuner == nil {
		return l, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(j api.Job) bool { return !strings.HasPrefix(j.ID, idPrefix) })
	page, more, err := request.After(r, all, defaultJobs, func(j api.Job) string { return j.ID })
	if err != nil {
		return nil, err
	}
	for _, run := range page {
		if asked, err := a.Tuner.Request(run.ID); err == nil {
			l.Data = append(l.Data, jobOf(run, asked))
		}
	}
	l.HasMore = more
	return l, nil
}

// Unfinished is a job that is not over and whose request satisfies with, or "".
func (a *API) Unfinished(ctx context.Context, with func(api.FineTuningRequest) bool) (id string, err error) {
	if a.Tuner == nil {
		return "", nil
	}
	all, err := a.Runs.List(ctx)
	if err != nil {
		return "", err
	}
	for _, run := range all {
		if run.State != "queued" && run.State != "running" || !strings.HasPrefix(run.ID, idPrefix) {
			continue
		}
		if asked, err := a.Tuner.Request(run.ID); err == nil && with(asked) {
			return run.ID, nil
		}
	}
	return "", nil
}
