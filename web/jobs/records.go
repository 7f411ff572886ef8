package jobs

import (
	"bytes"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/series"
	"github.com/starling-network/starling/web/totals"
)

func (a *API) recordRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/v1/jobs/{id}/metrics", Scope: access.Read,
			Summary: "The series of a run, thinned for drawing", Answer: api.Metrics{}, Handle: a.metrics,
			Params: []request.Param{request.Query("series", "string", "names, separated by commas; all unless given"),
				request.Query("points", "integer", "of a series, 3 to 20000; 1000 unless given"),
				request.Query("from", "number", "first step"), request.Query("to", "number", "last step")}},
		{Method: "GET", Path: "/v1/jobs/{id}/metrics.csv", Scope: access.Read,
			Summary: "Every record of a run's metrics, as comma-separated values", Kinds: []string{answer.CSV},
			Stream: a.metricsCSV},
		{Method: "GET", Path: "/v1/jobs/{id}/lineage", Scope: access.Read,
			Summary: "The attested checkpoints of a run, with their signers", Answer: api.Lineage{}, Handle: a.lineage,
			Params: append([]request.Param{request.Query("order", "string", "desc: the latest first")},
				request.PageParams...)},
		{Method: "GET", Path: "/v1/jobs/{id}/receipts", Scope: access.Read,
			Summary: "Why each was paid, was not, or was slashed", Answer: api.Receipts{}, Handle: a.receipts,
			Params: append([]request.Param{
				request.Query("who", "string", "only those about an account, by the beginning of its address"),
				request.Query("kind", "string", "only those of a kind"),
				request.Query("zero", "boolean", "only those of zero")}, request.PageParams...)},
		{Method: "GET", Path: "/v1/jobs/{id}/disputes", Scope: access.Read, Summary: "The disputes of a run, move by move",
			Answer: api.Disputes{}, Handle: a.disputes},
		{Method: "GET", Path: "/v1/jobs/{id}/samples", Scope: access.Read,
			Summary: "How the models of a run continue its prompts", Answer: api.Samples{}, Handle: a.samples},
		{Method: "GET", Path: "/v1/jobs/{id}/workers", Scope: access.Read,
			Summary: "The members of a run, with their work and pay", Answer: api.Members{}, Handle: a.members},
		{Method: "GET", Path: "/v1/jobs/{id}/cost", Scope: access.Read, Summary: "What a run has cost",
			Answer: api.Cost{}, Handle: a.cost},
		{Method: "GET", Path: "/v1/jobs/{id}/logs", Scope: access.Read, Summary: "Lines of a run's log",
			Answer: api.Log{}, Handle: a.logs,
			Params: []request.Param{
				request.Query("from", "integer", "offset in bytes; negative: from the end; -16384 unless given"),
				request.Query("limit", "integer", "bytes, at most 262144")}},
		{Method: "GET", Path: "/v1/jobs/{id}/files", Scope: access.Read, Summary: "The files of a run",
			Answer: api.Files{}, Handle: a.files},
		{Method: "GET", Path: "/v1/jobs/{id}/files/{name...}", Scope: access.Read,
			Summary: "A file of a run; ranges of it on demand", Kinds: answer.TypesOfFiles, Stream: a.file},
	}
}

func (a *API) metrics(r *http.Request) (any, error) {
	n, err := request.Int(r, "points", series.DefaultPoints, 3, series.MaxPoints)
	if err != nil {
		return nil, err
	}
	from, err := request.Float(r, "from", 0)
	if err != nil {
		return nil, err
	}
	to, err := request.Float(r, "to", math.Inf(1))
	if err != nil {
		return nil, err
	}
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	var names []string
	if text := r.URL.Query().Get("series"); text != "" {
		names = strings.Split(text, ",")
	}
	return a.rendered.get(r.PathValue("id")+"?"+r.URL.RawQuery, h.Version,
		func() (any, error) { return series.Of(h, names, int(n), from, to), nil })
}

func (a *API) metricsCSV(w http.ResponseWriter, r *http.Request) error {
	h, err := a.history(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	_ = api.WriteCSV(&b, h.Metrics) // to memory: it does not fail
	return answer.Send(w, r, answer.CSV+"; charset=utf-8", b.Bytes())
}

func (a *API) lineage(r *http.Request) (any, error) {
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	list := h.Lineage
	if r.URL.Query().Get("order") == "desc" {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	p, err := request.PageOf(r, len(list))
	if err != nil {
		return nil, err
	}
	l := api.Lineage{Total: len(list)}
	l.Checkpoints, l.HasMore, l.After = request.Cut(list, p)
	return l, nil
}

func (a *API) receipts(r *http.Request) (any, error) {
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	who, kind, zero := q.Get("who"), q.Get("kind"), q.Get("zero") == "true"
	list := h.Receipts
	if who != "" || kind != "" || zero {
		list = slices.DeleteFunc(slices.Clone(list), func(x api.Receipt) bool {
			return !strings.HasPrefix(x.Who, who) || kind != "" && x.Kind != kind || zero && x.Amount > 0
		})
	}
	p, err := request.PageOf(r, len(list))
	if err != nil {
		return nil, err
	}
	l := api.Receipts{Total: len(list)}
	l.Receipts, l.HasMore, l.After = request.Cut(list, p)
	return l, nil
}

func (a *API) disputes(r *http.Request) (any, error) {
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	return api.Disputes{Disputes: answer.Slice(h.Disputes)}, nil
}

func (a *API) samples(r *http.Request) (any, error) {
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	return api.Samples{Samples: answer.Slice(h.Samples)}, nil
}

func (a *API) members(r *http.Request) (any, error) {
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	return api.Members{Members: totals.Members(h), Rounds: len(h.Lineage), Audited: totals.Audited(h),
		Links: answer.Slice(h.Links), Stages: totals.Stages(h)}, nil
}

func (a *API) cost(r *http.Request) (any, error) {
	h, err := a.history(r)
	if err != nil {
		return nil, err
	}
	j := h.Job
	c := api.Cost{BudgetUzen: j.BudgetUzen, PaidUzen: j.PaidUzen, FeeUzen: j.FeeUzen, RefundedUzen: j.RefundedUzen,
		SlashedUzen: j.SlashedUzen, Coin: j.Coin}
	if spent := j.PaidUzen + j.FeeUzen + j.RefundedUzen; spent < j.BudgetUzen {
		c.RemainingUzen = j.BudgetUzen - spent
	}
	return c, nil
}

const maxLog = 256 << 10

func (a *API) logs(r *http.Request) (any, error) {
	from, err := request.Int(r, "from", -16<<10, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	limit, err := request.Int(r, "limit", 64<<10, 1, maxLog)
	if err != nil {
		return nil, err
	}
	return a.Runs.Log(r.Context(), r.PathValue("id"), from, int(limit))
}
