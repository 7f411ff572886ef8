// Package jobs is the part of the API that shows and starts runs: their state, series, records, files and streams of
// events, and the submission of jobs. Its sources say what a run is; the package selects, pages and renders it.
package jobs

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/stream"
)

// API answers about the runs of a server.
type API struct {
	Runs     source.Runs
	Launcher source.Launcher // nil: no job is started
	Network  source.Network  // whose blocks are in the stream of all runs; nil: none
	Streams  *stream.Streams
	Timeout  time.Duration // of a write of a file

	rendered cache
}

// Routes are the operations of runs.
func (a *API) Routes() []route.Route {
	return slices.Concat(a.jobRoutes(), a.recordRoutes(), a.eventRoutes())
}

func (a *API) jobRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/v1/jobs", Scope: access.Read, Summary: "List runs, the latest first",
			Answer: api.JobList{}, Handle: a.listJobs,
			Params: append([]request.Param{request.Query("state", "string", "only those in a state"),
				request.Query("kind", "string", "only runs, simulations or network")}, request.PageParams...)},
		{Method: "POST", Path: "/v1/jobs", Scope: access.Submit,
			Summary: "Submit a job. With an Idempotency-Key header, the same key gives the same job", Body: api.Submission{},
			Answer: api.Job{}, Status: http.StatusAccepted,
			Location: func(answer any) string { return "/v1/jobs/" + url.PathEscape(answer.(api.Job).ID) },
			Handle:   a.submit},
		{Method: "POST", Path: "/v1/plans", Scope: access.Submit, Summary: "Say what a job would be and cost",
			Body: api.Spec{}, Answer: api.Plan{}, Timeout: route.PlanTimeout, Handle: a.plan},
		{Method: "GET", Path: "/v1/jobs/{id}", Scope: access.Read, Summary: "A run and its totals so far",
			Answer: api.Job{}, Handle: a.job},
		{Method: "POST", Path: "/v1/jobs/{id}/cancel", Scope: access.Submit,
			Summary: "Stop a job that was submitted here; what was attested stays", Answer: api.Job{}, Handle: a.cancel},
	}
}

func (a *API) history(r *http.Request) (*source.History, error) {
	return a.Runs.History(r.Context(), r.PathValue("id"))
}

func (a *API) listJobs(r *http.Request) (any, error) {
	all, err := a.Runs.List(r.Context())
	if err != nil {
		return nil, err
	}
	state, kind := r.URL.Query().Get("state"), r.URL.Query().Get("kind")
	if state != "" || kind != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(j api.Job) bool {
			return state != "" && j.State != state || kind != "" && j.Kind != kind
		})
	}
	p, err := request.PageOf(r, len(all))
	if err != nil {
		return nil, err
	}
	var l api.JobList
	l.Jobs, l.HasMore, l.After = request.Cut(all, p)
	return l, nil
}

func (a *API) job(r *http.Request) (any, error) {
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	return h.Job, nil
}

func (a *API) plan(r *http.Request) (any, error) {
	if a.Launcher == nil {
		return nil, failure.ErrSubmissionOff
	}
	var spec api.Spec
	if err := request.Decode(r, &spec); err != nil {
		return nil, err
	}
	return a.Launcher.Plan(r.Context(), spec)
}

func (a *API) submit(r *http.Request) (any, error) {
	if a.Launcher == nil {
		return nil, failure.ErrSubmissionOff
	}
	key := r.Header.Get(request.KeyHeader)
	if len(key) > request.MaxKey {
		return nil, failure.New(http.StatusBadRequest, "KEY_TOO_LONG", "an Idempotency-Key has at most 200 characters",
			"send a random identifier, such as a UUID")
	}
	var sub api.Submission
	if err := request.Decode(r, &sub); err != nil {
		return nil, err
	}
	id, err := a.Launcher.Submit(r.Context(), key, sub)
	if err != nil {
		return nil, err
	}
	h, err := a.Runs.History(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return h.Job, nil
}

func (a *API) cancel(r *http.Request) (any, error) {
	if a.Launcher == nil {
		return nil, failure.ErrSubmissionOff
	}
	if err := a.Launcher.Cancel(r.Context(), r.PathValue("id")); err != nil {
		return nil, err
	}
	return a.job(r)
}
