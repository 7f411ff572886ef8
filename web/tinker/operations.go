package tinker

import (
	"net/http"
	"time"

	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/tinker/body"
)

// An operation is an address below Prefix, what it takes, and the function that answers it. A name that ends with a
// parameter in braces has any rest.
type operation struct {
	method, name, summary string
	handle                func(r request) (any, error)
}

// operations are all addresses of the server.
func operations(s *Server) []operation {
	get, post := http.MethodGet, http.MethodPost
	return []operation{
		{get, "healthz", "Whether loops are served", healthz},
		{get, "get_server_capabilities", "The base model, and the losses", s.capabilities},
		{get, "samplers/{id}", "The weights of a sampling session", s.describeSampler},
		{post, "client/config", "Settings of the published client", clientConfig},
		{post, "telemetry", "Events of a client, which are dropped", telemetry},
		{post, "create_session", "Begin a session", s.createSession},
		{post, "session_heartbeat", "Say that a client is there", s.heartbeat},
		{post, "create_sampling_session", "Name weights to draw samples from", s.createSampler},
		{post, "create_model", "Create a model that is trained", s.createModel},
		{post, "get_info", "How a model was created", s.info},
		{post, "unload_model", "End the training of a model, and its run", s.unload},
		{post, "forward", "Log-probabilities of targets",
			submits(s, "forward", s.pass)},
		{post, "forward_backward", "Log-probabilities of targets, and gradients of a loss",
			submits(s, "forward_backward", s.pass)},
		{post, "optim_step", "Move the weights by the gradients; on a network the step is paid",
			submits(s, "optim_step", s.step)},
		{post, "save_weights", "Keep weights, and the state of the optimizer",
			submits(s, "save_weights", s.save(Training))},
		{post, "save_weights_for_sampler", "Keep weights to draw samples from",
			submits(s, "save_weights_for_sampler", s.save(Sampling))},
		{post, "load_weights", "Continue from weights that were kept",
			submits(s, "load_weights", s.load)},
		{post, "weights_info", "What weights that were kept are of", s.weightsInfo},
		{post, "asample", "Continue a prompt; the result is retrieved", s.asample},
		{post, "sample", "Continue a prompt, and wait for the result", s.sample},
		{post, "retrieve_future", "The result of a request that was promised, or try_again", s.retrieve},
	}
}

// scope is that of the tokens with which requests may be made. A look whether the server is well needs none.
func (o operation) scope() string {
	if o.name == "healthz" {
		return ""
	}
	return access.Submit
}

// longest is how long a client may wait for an answer to a request of another server's routes: that of sample comes
// after the work that waits before it.
const longest = time.Hour

// Routes are the operations for a server that has others, too, and checks tokens and the names of hosts itself. A
// server that is nil has none.
func (s *Server) Routes() []route.Route {
	if s == nil {
		return nil
	}
	routes := make([]route.Route, len(s.all))
	for i, o := range s.all {
		timeout := 2 * s.config.wait
		if o.name == "sample" {
			timeout = longest
		}
		routes[i] = route.Route{Method: o.method, Path: Prefix + o.name, Scope: o.scope(), Summary: o.summary,
			Timeout: timeout, Handle: func(r *http.Request) (any, error) {
				text, err := body.Read(r)
				if err != nil {
					return nil, err
				}
				return o.handle(request{r.Context(), access.CallerOf(r.Context()), text, r.PathValue("id")})
			}}
		if o.method == http.MethodPost {
			routes[i].Object = maxBody
		}
	}
	return routes
}
