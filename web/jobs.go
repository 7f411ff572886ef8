package web

import (
	"bytes"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/reward"
)

func (s *Server) history(r *http.Request) (*History, error) {
	return s.Runs.History(r.Context(), r.PathValue("id"))
}

func (s *Server) listJobs(r *http.Request) (any, error) {
	all, err := s.Runs.List(r.Context())
	if err != nil {
		return nil, err
	}
	state, kind := r.URL.Query().Get("state"), r.URL.Query().Get("kind")
	if state != "" || kind != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(j api.Job) bool {
			return state != "" && j.State != state || kind != "" && j.Kind != kind
		})
	}
	p, err := paged(r, len(all))
	if err != nil {
		return nil, err
	}
	var l api.JobList
	l.Jobs, l.HasMore, l.After = cut(all, p)
	return l, nil
}

func (s *Server) job(r *http.Request) (any, error) {
	h, err := s.history(r)
	if err != nil {
		return nil, err
	}
	return h.Job, nil
}

// rendered keeps the latest answers that are costly to make: thinning a long run takes milliseconds, and everybody who
// looks at it asks for the same.
type rendered struct {
	mu      sync.Mutex
	answers map[string]renderedAnswer
}

type renderedAnswer struct {
	version uint64
	body    []byte
}

const maxRendered = 64

func (c *rendered) get(key string, version uint64, render func() (any, error)) (any, error) {
	c.mu.Lock()
	a, ok := c.answers[key]
	c.mu.Unlock()
	if ok && a.version == version {
		return raw{"application/json", a.body}, nil
	}
	v, err := render()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := encode(&b, v); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxRendered {
		c.answers = map[string]renderedAnswer{}
	}
	c.answers[key] = renderedAnswer{version, b.Bytes()}
	return raw{"application/json", b.Bytes()}, nil
}

func (s *Server) metrics(r *http.Request) (any, error) {
	n, err := whole(r, "points", defaultPoints, 3, maxPoints)
	if err != nil {
		return nil, err
	}
	from, err := number(r, "from", 0)
	if err != nil {
		return nil, err
	}
	to, err := number(r, "to", math.Inf(1))
	if err != nil {
		return nil, err
	}
	h, err := s.history(r)
	if err != nil {
		return nil, err
	}
	var names []string
	if text := r.URL.Query().Get("series"); text != "" {
		names = strings.Split(text, ",")
	}
	return s.rendered.get(r.PathValue("id")+"?"+r.URL.RawQuery, h.Version,
		func() (any, error) { return series(h, names, int(n), from, to), nil })
}

func (s *Server) metricsCSV(w http.ResponseWriter, r *http.Request) error {
	h, err := s.history(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	_ = api.WriteCSV(&b, h.Metrics) // to memory: it does not fail
	return send(w, r, csvText+"; charset=utf-8", b.Bytes())
}

func (s *Server) lineage(r *http.Request) (any, error) {
	h, err := s.history(r)
	if err != nil {
		return nil, err
	}
	list := h.Lineage
	if r.URL.Query().Get("order") == "desc" {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	p, err := paged(r, len(list))
	if err != nil {
		return nil, err
	}
	l := api.Lineage{Total: len(list)}
	l.Checkpoints, l.HasMore, l.After = cut(list, p)
	return l, nil
}

func (s *Server) receipts(r *http.Request) (any, error) {
	h, err := s.history(r)
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
	p, err := paged(r, len(list))
	if err != nil {
		return nil, err
	}
	l := api.Receipts{Total: len(list)}
	l.Receipts, l.HasMore, l.After = cut(list, p)
	return l, nil
}

func (s *Server) disputes(r *http.Request) (any, error) {
	h, err := s.history(r)
	if err != nil {
		return nil, err
	}
	return api.Disputes{Disputes: some(h.Disputes)}, nil
}

func (s *Server) samples(r *http.Request) (any, error) {
	h, err := s.history(r)
	if err != nil {
		return nil, err
	}
	return api.Samples{Samples: some(h.Samples)}, nil
}

// some is a list that is not null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (s *Server) members(r *http.Request) (any, error) {
	h, err := s.history(r)
	if err != nil {
		return nil, err
	}
	return api.Members{Members: Members(h), Rounds: len(h.Lineage), Audited: audited(h), Links: some(h.Links)}, nil
}

// Members are those who took part in a run, as its receipts and signatures tell: in the order in which they first
// appear.
func Members(h *History) []api.Member {
	list, index := []api.Member{}, map[string]int{}
	member := func(id string) *api.Member {
		i, ok := index[id]
		if !ok {
			i = len(list)
			index[id] = i
			list = append(list, api.Member{ID: id, Zeros: []string{}})
		}
		return &list[i]
	}
	for _, c := range h.Lineage {
		for _, signer := range c.Signers {
			member(signer.ID).Signed++
		}
	}
	for _, x := range h.Receipts {
		m := member(x.Who)
		if m.Role == "" {
			m.Role = roleOf(x)
		}
		if x.Kind == "slash" {
			m.SlashedUzen += x.Amount
			continue
		}
		m.Uzen += x.Amount
		switch {
		case x.Amount > 0:
			m.Paid++
		default:
			m.Zero++
			if !slices.Contains(m.Zeros, x.Why) {
				m.Zeros = append(m.Zeros, x.Why)
			}
		}
		switch done := []string{reward.Verified, reward.TooSmall, reward.BudgetExhausted}; {
		case x.Kind == "work" && slices.Contains(done, x.Reason):
			m.Units++
		case x.Kind == "audit":
			CountAudit(&m.Audits, x.Reason)
		}
	}
	return list
}

// audited are the audits of a run, as its receipts tell, by who did them and whose work it was: of a unit that more
// than one worked on, who was paid for it, or whom the dispute that came of the audit is about.
func audited(h *History) []api.Audited {
	type unit struct {
		round int
		unit  uint32
	}
	type pair struct{ verifier, worker string }
	by, list, index := map[unit]string{}, []api.Audited{}, map[pair]int{}
	for _, x := range h.Receipts {
		if at := (unit{x.Round, x.Unit}); x.Kind == "work" && (by[at] == "" || x.Amount > 0) {
			by[at] = x.Who
		}
	}
	for _, x := range h.Receipts {
		if x.Kind != "audit" {
			continue
		}
		p := pair{x.Who, by[unit{x.Round, x.Unit}]}
		if n := x.Dispute; n != nil && *n >= 0 && *n < len(h.Disputes) {
			p.worker = h.Disputes[*n].Worker
		}
		if p.worker == "" {
			continue
		}
		i, ok := index[p]
		if !ok {
			i = len(list)
			index[p] = i
			list = append(list, api.Audited{Verifier: p.verifier, Worker: p.worker})
		}
		list[i].Audits++
		list[i].Failed += int(count(reward.AuditOutcome(x.Reason) == reward.Found))
	}
	return list
}

func roleOf(x api.Receipt) string {
	switch {
	case x.Role != "":
		return x.Role
	case x.Kind == "refund":
		return "consumer"
	}
	return "pool"
}

func (s *Server) cost(r *http.Request) (any, error) {
	h, err := s.history(r)
	if err != nil {
		return nil, err
	}
	j := h.Job
	c := api.Cost{BudgetUzen: j.BudgetUzen, PaidUzen: j.PaidUzen, FeeUzen: j.FeeUzen, RefundedUzen: j.RefundedUzen,
		SlashedUzen: j.SlashedUzen}
	if spent := j.PaidUzen + j.FeeUzen + j.RefundedUzen; spent < j.BudgetUzen {
		c.RemainingUzen = j.BudgetUzen - spent
	}
	return c, nil
}

const maxLog = 256 << 10

func (s *Server) logs(r *http.Request) (any, error) {
	from, err := whole(r, "from", -16<<10, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	limit, err := whole(r, "limit", 64<<10, 1, maxLog)
	if err != nil {
		return nil, err
	}
	return s.Runs.Log(r.Context(), r.PathValue("id"), from, int(limit))
}

func (s *Server) models(r *http.Request) (any, error) {
	all, err := s.Runs.List(r.Context())
	if err != nil {
		return nil, err
	}
	l := api.Models{Models: []api.Model{}}
	for _, j := range all {
		if j.Kind != "run" {
			continue
		}
		files, err := s.Runs.Files(r.Context(), j.ID)
		files = slices.DeleteFunc(files, func(f api.File) bool { return f.Kind != "model" })
		h, gone := s.Runs.History(r.Context(), j.ID)
		if err != nil || gone != nil || len(files) == 0 {
			continue // it went away, or has none yet
		}
		m := api.Model{ID: j.ID, Name: j.Name, Folder: j.Folder, StateRoot: j.StateRoot, EvalLoss: j.EvalLoss,
			BitsPerByte: j.BitsPerByte, Steps: j.Step, Tokens: j.Tokens, Rounds: len(h.Lineage), Facts: h.Job.Facts,
			Files: files, Contribute: []api.Member{}}
		if n := len(h.Lineage); n > 0 {
			m.Signers = len(h.Lineage[n-1].Signers)
		}
		for _, x := range Members(h) {
			if x.Units > 0 && x.Uzen > 0 {
				m.Contribute = append(m.Contribute, x)
			}
		}
		l.Models = append(l.Models, m)
	}
	return l, nil
}

var errNoLauncher = fail(http.StatusNotImplemented, "SUBMISSION_OFF", "this server shows runs and starts none",
	"run starling train JOB.yaml, or starling web over a folder of runs, without --read-only")

func (s *Server) plan(r *http.Request) (any, error) {
	if s.Launcher == nil {
		return nil, errNoLauncher
	}
	var spec api.Spec
	if err := decode(r, &spec); err != nil {
		return nil, err
	}
	return s.Launcher.Plan(r.Context(), spec)
}

const maxKey = 200

func (s *Server) submit(r *http.Request) (any, error) {
	if s.Launcher == nil {
		return nil, errNoLauncher
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return nil, fail(http.StatusBadRequest, "KEY_TOO_LONG", "an Idempotency-Key has at most 200 characters",
			"send a random identifier, such as a UUID")
	}
	var sub api.Submission
	if err := decode(r, &sub); err != nil {
		return nil, err
	}
	id, err := s.Launcher.Submit(r.Context(), key, sub)
	if err != nil {
		return nil, err
	}
	h, err := s.Runs.History(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return h.Job, nil
}

func (s *Server) cancel(r *http.Request) (any, error) {
	if s.Launcher == nil {
		return nil, errNoLauncher
	}
	if err := s.Launcher.Cancel(r.Context(), r.PathValue("id")); err != nil {
		return nil, err
	}
	return s.job(r)
}
