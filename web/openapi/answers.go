package openapi

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/route"
)

// tags are what operations are grouped by, by the beginning of their paths: the first that fits counts.
var tags = []struct {
	name, text string
	paths      []string
}{
	{"Jobs", "Runs and simulations: state, series, record, files and streams",
		[]string{"/v1/jobs", "/v1/plans", "/v1/events"}},
	{"Models", "What finished runs left, and asking it, in OpenAI's form",
		[]string{"/v1/models", "/v1/trained-models", "/v1/chat/", "/v1/completions"}},
	{"Fine-tuning", "Files of examples, and jobs that tune models with them, in OpenAI's form",
		[]string{"/v1/files", "/v1/fine_tuning/"}},
	{"Training loops", "Loops that a program leads step by step, in the form of the Tinker API: docs/serving.md",
		[]string{"/api/v1/"}},
	{"Network", "The chain of --network: participants, accounts, blocks and transactions",
		[]string{"/v1/network", "/v1/workers", "/v1/validators", "/v1/accounts/", "/v1/blocks", "/v1/txs/"}},
	{"Server", "The server itself", []string{"/"}},
}

func tagOf(path string) string {
	for _, t := range tags {
		if slices.ContainsFunc(t.paths, func(p string) bool { return strings.HasPrefix(path, p) }) {
			return t.name
		}
	}
	return ""
}

func tagList() []any {
	var list []any
	for _, t := range tags {
		list = append(list, object{"name": t.name, "description": t.text})
	}
	return list
}

// responses are what an operation answers, by status: what was asked for, and each error that it has for reasons of its
// own. Those that every operation has are the default.
func (d *describer) responses(r route.Route) object {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	kind, problem := "application/problem+json", reflect.TypeFor[api.Problem]()
	if route.OpenAI(r.Path) {
		kind, problem = "application/json", reflect.TypeFor[api.OpenAIError]()
	}
	failure := func(text string) object {
		return object{"description": text, "content": object{kind: object{"schema": d.schema(problem)}}}
	}
	all := object{strconv.Itoa(status): d.good(r), "default": failure("Any other error")}
	for status, text := range failures(r) {
		all[strconv.Itoa(status)] = failure(text)
	}
	return all
}

// good is the answer that was asked for.
func (d *describer) good(r route.Route) object {
	good := object{"description": "As asked"}
	text := object{"schema": object{"type": "string"}}
	switch {
	case r.Events != nil:
		good["content"] = object{"text/event-stream": text}
		if r.Answer != nil {
			d.schema(reflect.TypeOf(r.Answer))
			good["description"] = "Events whose data is an Update"
		}
	case r.Stream != nil && r.Method == "POST":
		good["content"] = object{"application/json": object{"schema": object{"type": "object"}}, "text/event-stream": text}
	case r.Stream != nil:
		content := object{}
		for _, kind := range r.Kinds {
			if content[kind] = text; kind == answer.Octets {
				content[kind] = object{}
			}
		}
		good["content"] = content
	case r.Answer != nil:
		good["content"] = object{"application/json": object{"schema": d.schema(reflect.TypeOf(r.Answer))}}
	default:
		good["content"] = object{"application/json": object{"schema": object{"type": "object"}}}
	}
	return good
}

// failures are the errors that a route has for reasons of its own.
func failures(r route.Route) map[int]string {
	all := map[int]string{}
	if r.Scope != "" {
		all[http.StatusUnauthorized] = "A token is needed, or is not known: TOKEN_NEEDED, TOKEN_UNKNOWN"
		all[http.StatusForbidden] = "The token lacks the scope, or a page of another origin asks: SCOPE_MISSING, CROSS_SITE"
	}
	if len(r.Params) > 0 || strings.Contains(r.Path, "{") {
		all[http.StatusBadRequest] = "A parameter is not what it may be"
	}
	if strings.Contains(r.Path, "{") {
		all[http.StatusNotFound] = "There is no such thing"
	}
	if r.Body != nil || r.Upload > 0 || r.Object > 0 || r.Method == "POST" && r.Stream != nil {
		all[http.StatusBadRequest] = "The body is not what is asked for"
		all[http.StatusRequestTimeout] = "The body did not come in time: BODY_LATE"
		all[http.StatusRequestEntityTooLarge] = "The body is too large: BODY_TOO_LARGE"
		all[http.StatusUnsupportedMediaType] = "The body is of another type"
	}
	if r.Events != nil {
		all[http.StatusServiceUnavailable] = "As many streams are open as may be"
	}
	maps.Copy(all, failuresOfTag(r))
	return all
}

// failuresOfTag are the errors of the resource of an operation.
func failuresOfTag(r route.Route) map[int]string {
	post, tag := r.Method == "POST", tagOf(r.Path)
	all := map[int]string{}
	switch {
	case tag == "Network":
		all[http.StatusNotFound] = "The server was told of no network, or there is no such thing: NO_NETWORK, NOT_FOUND"
		all[http.StatusBadGateway] = "The validator does not answer: NETWORK_UNREACHABLE"
		all[http.StatusServiceUnavailable] = "The network is not up yet: NETWORK_STARTING"
	case tag == "Training loops":
		all[http.StatusNotFound] = "There is no such session, model, sampling session or weights"
		if post {
			all[http.StatusConflict] = "The number stands for another request: SEQUENCE_REUSED"
			all[http.StatusTooManyRequests] = "As much work waits as may: QUEUE_FULL"
		}
	case tag == "Models" && post:
		all[http.StatusNotFound] = "There is no such model"
		all[http.StatusTooManyRequests] = "As many texts are written as may be at once"
		all[http.StatusNotImplemented] = "The server asks no models"
	case tag == "Jobs" || tag == "Fine-tuning":
		if post && r.Upload == 0 {
			all[http.StatusNotImplemented] = "The server starts no jobs"
			all[http.StatusUnprocessableEntity] = "The job is refused, with the place of each error: JOB_INVALID, KEY_REUSED"
		}
		if r.Status == http.StatusAccepted || post && r.Path == "/v1/fine_tuning/jobs" {
			all[http.StatusTooManyRequests] = "As many jobs wait as may: QUEUE_FULL"
		}
		if strings.HasSuffix(r.Path, "/cancel") || strings.HasSuffix(r.Path, "/resume") || r.Method == "DELETE" {
			all[http.StatusConflict] = "It is over, or in use"
		}
	}
	return all
}
