// Package route describes one operation of the API: its address, what it takes and answers, and the function that
// answers it. REST, gRPC and the OpenAPI description are three readers of the same routes. It serves nothing itself.
package route

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/stream"
)

// PlanTimeout is how long an operation may take that reads and tokenizes the data of a job.
const PlanTimeout = 5 * time.Minute

// MaxBody is the most bytes in the body of a request that uploads no file.
const MaxBody = 1 << 20

// Route is one operation. It has exactly one of Handle, Stream and Events.
type Route struct {
	Method, Path string
	Scope        string // that a token needs; "": none
	Summary      string
	Params       []request.Param
	Body, Answer any                     // a value of the type; nil: none
	Status       int                     // of an answer; 0: 200
	Location     func(answer any) string // of the new resource, for the header; nil: there is none
	Timeout      time.Duration           // of an answer that takes long; 0: that of every write
	Upload       int64                   // most bytes of the form with a file that the body is; 0: it is none
	Kinds        []string                // types of content that Stream answers GET with
	Object       int64                   // most bytes of a body that is a JSON object of another interface; 0: it is none

	Handle func(*http.Request) (any, error)
	Stream func(http.ResponseWriter, *http.Request) error
	// Events calls open for a stream once the request is found right, and returns when the stream ends.
	Events func(r *http.Request, open func() (stream.Sink, error)) error
}

var pathParam = regexp.MustCompile(`\{(\w+)(?:\.\.\.)?\}`)

// PathParams are the names of the parameters in the path.
func (r Route) PathParams() (names []string) {
	for _, m := range pathParam.FindAllStringSubmatch(r.Path, -1) {
		names = append(names, m[1])
	}
	return names
}

// OpenAI reports whether a path is one of OpenAI's interface, whose errors have its form.
func OpenAI(path string) bool {
	return slices.ContainsFunc([]string{"/v1/files", "/v1/fine_tuning/", "/v1/models", "/v1/completions", "/v1/chat/"},
		func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}
