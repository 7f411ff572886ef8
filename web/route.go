package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
)

// route is one operation of the API: what the server does, and what /openapi.json says of it.
type route struct {
	method, path string
	scope        string // that a token needs; "": none
	summary      string
	params       []param
	body, answer any                     // a value of the type; nil: none
	status       int                     // of an answer; 0: 200
	place        func(answer any) string // of what the request made, for the header Location; nil: it made nothing
	patience     time.Duration           // with a request that takes long to answer; 0: Limits.Write
	upload       bool                    // the body is a form with a file
	kinds        []string                // types of content of what a stream answers to GET
	handle       func(*Server, *http.Request) (any, error)
	stream       func(*Server, http.ResponseWriter, *http.Request) error // in place of handle
	// in place of handle: it opens a stream once the request is found right
	events func(s *Server, r *http.Request, open func() (sink, error)) error
}

// param is a parameter in the query of a route.
type param struct{ name, kind, text string }

var (
	pageParams = []param{{"limit", "integer", "entries of a page, 1 to 1000; 100 unless given"},
		{"after", "string", "cursor of a page"}}
	listParams = []param{{"limit", "integer", "entries of a page, 1 to 10000"},
		{"after", "string", "identifier of the last entry of the page before"}}
	routes []route
)

func init() {
	routes = slices.Concat(runRoutes(), modelRoutes(), networkRoutes(), tuningRoutes(), serverRoutes())
}

func runRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/jobs", scope: ScopeRead, summary: "List runs, the latest first", answer: api.JobList{},
			handle: (*Server).listJobs,
			params: append([]param{{"state", "string", "only those in a state"},
				{"kind", "string", "only runs, simulations or network"}}, pageParams...)},
		{method: "POST", path: "/v1/jobs", scope: ScopeSubmit,
			summary: "Submit a job. With an Idempotency-Key header, the same key gives the same job", body: api.Submission{},
			answer: api.Job{}, status: http.StatusAccepted,
			place:  func(answer any) string { return "/v1/jobs/" + url.PathEscape(answer.(api.Job).ID) },
			handle: (*Server).submit},
		{method: "POST", path: "/v1/plans", scope: ScopeSubmit, summary: "Say what a job would be and cost", body: api.Spec{},
			answer: api.Plan{}, patience: planPatience, handle: (*Server).plan},
		{method: "GET", path: "/v1/jobs/{id}", scope: ScopeRead, summary: "A run and its totals so far", answer: api.Job{},
			handle: (*Server).job},
		{method: "POST", path: "/v1/jobs/{id}/cancel", scope: ScopeSubmit,
			summary: "Stop a job that was submitted here; what was attested stays", answer: api.Job{}, handle: (*Server).cancel},
		{method: "GET", path: "/v1/jobs/{id}/metrics", scope: ScopeRead, summary: "The series of a run, thinned for drawing",
			answer: api.Metrics{}, handle: (*Server).metrics,
			params: []param{{"series", "string", "names, separated by commas; all unless given"},
				{"points", "integer", "of a series, 3 to 20000; 1000 unless given"},
				{"from", "number", "first step"}, {"to", "number", "last step"}}},
		{method: "GET", path: "/v1/jobs/{id}/metrics.csv", scope: ScopeRead,
			summary: "Every record of a run's metrics, as comma-separated values", kinds: []string{csvText},
			stream: (*Server).metricsCSV},
		{method: "GET", path: "/v1/jobs/{id}/lineage", scope: ScopeRead,
			summary: "The attested checkpoints of a run, with who signed them", answer: api.Lineage{}, handle: (*Server).lineage,
			params: append([]param{{"order", "string", "desc: the latest first"}}, pageParams...)},
		{method: "GET", path: "/v1/jobs/{id}/receipts", scope: ScopeRead,
			summary: "Why each was paid, was not, or was slashed", answer: api.Receipts{}, handle: (*Server).receipts,
			params: append([]param{{"who", "string", "only those about an account, by the beginning of its address"},
				{"kind", "string", "only those of a kind"}, {"zero", "boolean", "only those of zero"}}, pageParams...)},
		{method: "GET", path: "/v1/jobs/{id}/disputes", scope: ScopeRead, summary: "The disputes of a run, move by move",
			answer: api.Disputes{}, handle: (*Server).disputes},
		{method: "GET", path: "/v1/jobs/{id}/samples", scope: ScopeRead,
			summary: "How the models of a run continue its prompts", answer: api.Samples{}, handle: (*Server).samples},
		{method: "GET", path: "/v1/jobs/{id}/workers", scope: ScopeRead,
			summary: "Who took part in a run, and what it came to", answer: api.Members{}, handle: (*Server).members},
		{method: "GET", path: "/v1/jobs/{id}/cost", scope: ScopeRead, summary: "What a run has cost", answer: api.Cost{},
			handle: (*Server).cost},
		{method: "GET", path: "/v1/jobs/{id}/logs", scope: ScopeRead, summary: "Lines of a run's log", answer: api.Log{},
			handle: (*Server).logs,
			params: []param{{"from", "integer", "offset in bytes; negative: from the end; -16384 unless given"},
				{"limit", "integer", "bytes, at most 262144"}}},
		{method: "GET", path: "/v1/jobs/{id}/files", scope: ScopeRead, summary: "The files of a run", answer: api.Files{},
			handle: (*Server).files},
		{method: "GET", path: "/v1/jobs/{id}/files/{name...}", scope: ScopeRead,
			summary: "A file of a run; ranges of it on demand", kinds: fileKinds, stream: (*Server).file},
		{method: "GET", path: "/v1/jobs/{id}/events", scope: ScopeRead,
			summary: "Stream of what is new in a run; Last-Event-ID resumes it", answer: api.Update{},
			events: (*Server).jobEvents},
		{method: "GET", path: "/v1/events", scope: ScopeRead, summary: "Stream of runs that change, and of the network",
			events: (*Server).allEvents},
	}
}

func modelRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/trained-models", scope: ScopeRead, summary: "The models that finished runs left",
			answer: api.Models{}, handle: (*Server).models},
		{method: "GET", path: "/v1/models", scope: ScopeRead, summary: "The models that can be asked; OpenAI's form",
			answer: api.OpenAIModels{}, handle: (*Server).openAIModels},
		{method: "GET", path: "/v1/models/{model...}", scope: ScopeRead, summary: "A model that can be asked; OpenAI's form",
			answer: api.OpenAIModel{}, handle: (*Server).oneModel},
		{method: "DELETE", path: "/v1/models/{model...}", scope: ScopeSubmit,
			summary: "Remove the weights of a model that was tuned here; OpenAI's form",
			answer:  api.ModelDeleted{}, handle: (*Server).removeModel},
		{method: "POST", path: "/v1/chat/completions", scope: ScopeSubmit,
			summary: "Have a model go on with a conversation; OpenAI's form", patience: writingPatience,
			stream: (*Server).write},
		{method: "POST", path: "/v1/completions", scope: ScopeSubmit,
			summary: "Have a model go on with a text; OpenAI's form", patience: writingPatience, stream: (*Server).write},
	}
}

func networkRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/network", scope: ScopeRead, summary: "The network after its latest block",
			answer: api.Network{}, handle: (*Server).network},
		{method: "GET", path: "/v1/workers", scope: ScopeRead, summary: "Who works for the network", answer: api.Workers{},
			handle: (*Server).workers},
		{method: "GET", path: "/v1/validators", scope: ScopeRead, summary: "Who votes on the network's blocks",
			answer: api.Validators{}, handle: (*Server).validators},
		{method: "GET", path: "/v1/accounts/{address}", scope: ScopeRead,
			summary: "An account, what it does and what it waits for", answer: api.Account{}, handle: (*Server).account},
		{method: "GET", path: "/v1/blocks", scope: ScopeRead, summary: "Blocks, the latest first", answer: api.Blocks{},
			handle: (*Server).blocks,
			params: append(
				[]param{{"busy", "boolean", "only those with transactions, of the 300 blocks before the cursor: a page " +
					"may be empty and not the last"}},
				pageParams...)},
		{method: "GET", path: "/v1/txs/{hash}", scope: ScopeRead,
			summary: "A transaction. Without a height it is looked for in the index of the validator, or, where there " +
				"is none, in the latest 200 blocks", answer: api.Tx{}, handle: (*Server).tx,
			params: []param{{"height", "integer", "of its block"}}},
	}
}

func tuningRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/files", scope: ScopeSubmit,
			summary: "Keep a file of examples, read line by line; OpenAI's form", answer: api.FileObject{},
			patience: planPatience, upload: true, handle: (*Server).keepFile},
		{method: "GET", path: "/v1/files", scope: ScopeRead,
			summary: "The files of examples, the latest first; OpenAI's form", answer: api.FileObjects{},
			handle: (*Server).listFiles,
			params: append([]param{{"purpose", "string", "only those kept for fine-tune, or fine-tune-results"},
				{"order", "string", "asc: the earliest first"}}, listParams...)},
		{method: "GET", path: "/v1/files/{file}", scope: ScopeRead, summary: "A file of examples; OpenAI's form",
			answer: api.FileObject{}, handle: (*Server).oneFile},
		{method: "GET", path: "/v1/files/{file}/content", scope: ScopeRead,
			summary: "The lines of a file of examples, or the metrics of a job", kinds: []string{jsonLines},
			stream: (*Server).fileContent},
		{method: "DELETE", path: "/v1/files/{file}", scope: ScopeSubmit, summary: "Remove a file of examples; OpenAI's form",
			answer: api.FileDeleted{}, handle: (*Server).removeFile},
		{method: "POST", path: "/v1/fine_tuning/jobs", scope: ScopeSubmit,
			summary: "Submit a job that tunes a model with a file of examples; OpenAI's form", body: api.FineTuningRequest{},
			answer: api.FineTuningJob{}, patience: planPatience, handle: (*Server).createTuning},
		{method: "GET", path: "/v1/fine_tuning/jobs", scope: ScopeRead,
			summary: "The jobs that tune models, the latest first; OpenAI's form", answer: api.FineTuningJobs{},
			handle: (*Server).listTunings, params: listParams},
		{method: "GET", path: "/v1/fine_tuning/jobs/{id}", scope: ScopeRead,
			summary: "A job that tunes a model; OpenAI's form", answer: api.FineTuningJob{}, handle: (*Server).oneTuning},
		{method: "POST", path: "/v1/fine_tuning/jobs/{id}/cancel", scope: ScopeSubmit,
			summary: "Stop a job that tunes a model; OpenAI's form", answer: api.FineTuningJob{},
			handle: (*Server).cancelTuning},
		{method: "POST", path: "/v1/fine_tuning/jobs/{id}/pause", scope: ScopeSubmit,
			summary: "Stop a job that tunes a model until it is resumed; OpenAI's form",
			answer:  api.FineTuningJob{}, handle: (*Server).pauseTuning},
		{method: "POST", path: "/v1/fine_tuning/jobs/{id}/resume", scope: ScopeSubmit,
			summary: "Have a job go on that stopped, from its last attested checkpoint; OpenAI's form",
			answer:  api.FineTuningJob{}, handle: (*Server).resumeTuning},
		{method: "GET", path: "/v1/fine_tuning/jobs/{id}/events", scope: ScopeRead,
			summary: "What happened to a job, the latest first; OpenAI's form", answer: api.FineTuningEvents{},
			handle: (*Server).tuningEvents, params: listParams},
		{method: "GET", path: "/v1/fine_tuning/jobs/{id}/checkpoints", scope: ScopeRead,
			summary: "The attested checkpoints of a job, the latest first; OpenAI's form", answer: api.FineTuningCheckpoints{},
			handle: (*Server).tuningCheckpoints, params: listParams},
	}
}

func serverRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/health", summary: "Whether the server, and what it shows, works", answer: api.Health{},
			handle: (*Server).health},
		{method: "GET", path: "/v1/version", summary: "Version of the server", answer: api.Version{},
			handle: func(s *Server, _ *http.Request) (any, error) { return s.Version, nil }},
		{method: "GET", path: "/openapi.json", summary: "This description",
			handle: func(s *Server, _ *http.Request) (any, error) {
				text, err := s.spec()
				return raw{"application/json", text}, err
			}},
		{method: "GET", path: "/metrics", scope: ScopeRead, summary: "What the server counts, for Prometheus",
			kinds: []string{plainText}, stream: (*Server).prometheus},
	}
}

// route is the handler of a route.
func (s *Server) route(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		err := s.Tokens.allow(q, r.scope)
		most := int64(maxBody)
		if r.upload {
			most = maxUpload
		}
		q.Body = http.MaxBytesReader(w, q.Body, most)
		rc := http.NewResponseController(w)
		if err == nil && r.patience > 0 && !r.upload { // what takes long is the answer: the body comes as soon as any other
			err = buffer(q)
		}
		if err == nil && r.patience > 0 {
			end := time.Now().Add(r.patience)
			_, _ = rc.SetReadDeadline(end), rc.SetWriteDeadline(end) // a recorder has none
		}
		if err == nil && r.stream != nil {
			err = r.stream(s, w, q)
		} else if err == nil && r.events != nil {
			err = r.events(s, q, func() (sink, error) { return s.open(w) })
		} else if err == nil {
			var v any
			if v, err = r.handle(s, q); err == nil && r.status != 0 {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Cache-Control", "no-store")
				if r.place != nil {
					w.Header().Set("Location", r.place(v))
				}
				w.WriteHeader(r.status)
				_ = encode(w, v) // the reader is gone
				return
			} else if err == nil {
				err = answer(w, q, v)
			}
		}
		if err != nil {
			_ = rc.SetWriteDeadline(time.Now().Add(s.Limits.Write)) // what went before took its time
			s.problem(w, q, err)
		}
	})
}

// buffer reads the body of a request.
func buffer(r *http.Request) error {
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return late(err)
}

// late tells of a body that did not come in time, and leaves any other error of reading one.
func late(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Failure{
			Status: http.StatusRequestTimeout,
			Code:   "BODY_LATE",
			Detail: "the body of the request did not come in time",
			Fix:    "send it as soon as its header",
			Retry:  time.Second,
		}
	}
	return err
}

func badParam(name, value, want string) error {
	return fail(
		http.StatusBadRequest,
		"PARAMETER_INVALID",
		fmt.Sprintf("%s=%.80q is not %s", name, value, want),
		"see /openapi.json for what it may be",
	)
}

// whole reads a whole number from the query.
func whole(r *http.Request, name string, otherwise, low, high int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, badParam(name, text, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return n, nil
}

// number reads a number from the query.
func number(r *http.Request, name string, otherwise float64) (float64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != x {
		return 0, badParam(name, text, "a number")
	}
	return x, nil
}

// page is the part of a list that a request asks for.
type page struct {
	from, limit int
}

// paged reads the cursor and the size of a page. A cursor is where the page begins, written so that nobody counts on
// it.
func paged(r *http.Request, total int) (page, error) {
	limit, err := whole(r, "limit", 100, 1, 1000)
	if err != nil {
		return page{}, err
	}
	p := page{limit: int(limit)}
	if after := r.URL.Query().Get("after"); after != "" {
		text, err := base64.RawURLEncoding.DecodeString(after)
		n, wrong := strconv.Atoi(string(text))
		if err != nil || wrong != nil || n < 0 {
			return page{}, badParam("after", after, "the cursor of a page")
		}
		p.from = min(n, total)
	}
	p.limit = min(p.limit, total-p.from)
	return p, nil
}

// cut returns the page of a list, and the cursor of the next one.
func cut[T any](list []T, p page) (part []T, more bool, after string) {
	end := p.from + p.limit
	part = list[p.from:end:end]
	if part == nil {
		part = []T{}
	}
	if end < len(list) {
		return part, true, base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, int64(end), 10))
	}
	return part, false, ""
}

// decode reads the JSON body of a request: one value, no unknown key.
func decode(r *http.Request, into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fail(
			http.StatusUnsupportedMediaType,
			"BODY_NOT_JSON",
			"the body is not application/json",
			"send JSON, with the header Content-Type: application/json",
		)
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err = d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is something behind the value")
		}
	}
	var large *http.MaxBytesError
	if err = late(err); err != nil && !errors.As(err, &large) && !errors.As(err, new(*Failure)) {
		return &Failure{
			Status: http.StatusBadRequest,
			Code:   "BODY_INVALID",
			Detail: "the body is not what is asked for: " + strings.TrimPrefix(err.Error(), "json: "),
			Fix:    "see /openapi.json for its keys",
			Param:  blamed(err),
		}
	}
	return err
}

// blamed is the key of a body that an error of decoding it is about, or "".
func blamed(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return kind.Field
	}
	name, err := strconv.Unquote(strings.TrimPrefix(err.Error(), "json: unknown field "))
	if err != nil {
		return ""
	}
	return name
}
