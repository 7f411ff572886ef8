// Package models is the part of the API that shows models: those that runs left, and those that can be asked, in
// OpenAI's form. It passes requests for texts on to web/openai and computes nothing of a model.
package models

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/finetune"
	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/totals"
)

// firstTextTimeout is how long a model may take until it writes the first of a text: it may have to be loaded.
const firstTextTimeout = time.Minute

// API answers about the models of a server.
type API struct {
	Runs    source.Runs
	Models  openai.Model // that can be asked; nil: none
	Writer  http.Handler // of the texts of Models; nil without them
	Tunings *finetune.API
}

// Routes are the operations of models.
func (a *API) Routes() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/v1/trained-models", Scope: access.Read, Summary: "The models that finished runs left",
			Answer: api.Models{}, Handle: a.trained},
		{Method: "GET", Path: "/v1/models", Scope: access.Read, Summary: "The models that can be asked; OpenAI's form",
			Answer: api.OpenAIModels{}, Handle: a.list},
		{Method: "GET", Path: "/v1/models/{model...}", Scope: access.Read,
			Summary: "A model that can be asked; OpenAI's form", Answer: api.OpenAIModel{}, Handle: a.one},
		{Method: "DELETE", Path: "/v1/models/{model...}", Scope: access.Submit,
			Summary: "Remove the weights of a model that was tuned here; OpenAI's form",
			Answer:  api.ModelDeleted{}, Handle: a.remove},
		{Method: "POST", Path: "/v1/chat/completions", Scope: access.Submit,
			Summary: "Have a model continue a conversation; OpenAI's form", Timeout: firstTextTimeout,
			Stream: a.write},
		{Method: "POST", Path: "/v1/completions", Scope: access.Submit,
			Summary: "Have a model continue a text; OpenAI's form", Timeout: firstTextTimeout, Stream: a.write},
	}
}

// list lists the models that can be asked, in OpenAI's form.
func (a *API) list(*http.Request) (any, error) {
	l := api.OpenAIModels{Object: "list", Data: []api.OpenAIModel{}}
	if a.Models != nil {
		for _, m := range a.Models.Models() {
			l.Data = append(l.Data, api.OpenAIModel{ID: m.Name, Object: "model", Created: m.Created.Unix(),
				OwnedBy: "starling"})
		}
	}
	return l, nil
}

func (a *API) one(r *http.Request) (any, error) {
	all, _ := a.list(r)
	list := all.(api.OpenAIModels).Data
	if i := slices.IndexFunc(list, func(m api.OpenAIModel) bool { return m.ID == r.PathValue("model") }); i >= 0 {
		return list[i], nil
	}
	return nil, &failure.Error{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND", Detail: "there is no such model",
		Fix: "GET /v1/models lists those that can be asked", Param: "model"}
}

// remove removes the weights of a model that a job tuned, unless a job that is not over begins with it.
func (a *API) remove(r *http.Request) (any, error) {
	if a.Tunings.Tuner == nil {
		return nil, failure.ErrSubmissionOff
	}
	name := r.PathValue("model")
	busy, err := a.Tunings.Unfinished(r.Context(), func(asked api.FineTuningRequest) bool { return asked.Model == name })
	if err != nil {
		return nil, err
	}
	if busy != "" {
		return nil, &failure.Error{Status: http.StatusConflict, Code: "MODEL_IN_USE",
			Detail: "the job " + busy + " begins with the model", Fix: "wait for its end, or cancel it", Param: "model"}
	}
	if err := a.Tunings.Tuner.Remove(name); errors.Is(err, failure.ErrNotFound) {
		return nil, &failure.Error{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND",
			Detail: "no job tuned such a model here",
			Fix:    "GET /v1/models lists what there is; others than ft:... are removed with their folder", Param: "model"}
	} else if err != nil {
		return nil, err
	}
	return api.ModelDeleted{ID: name, Object: "model", Deleted: true}, nil
}

// write has a model write a text.
func (a *API) write(w http.ResponseWriter, r *http.Request) error {
	if a.Writer == nil {
		return failure.New(http.StatusNotImplemented, "SERVING_OFF", "this server shows models and asks none",
			"run starling model serve over the folder of a run, or starling web over a folder of runs without --read-only")
	}
	a.Writer.ServeHTTP(w, r)
	return nil
}

// trained lists the models that runs left.
func (a *API) trained(r *http.Request) (any, error) {
	all, err := a.Runs.List(r.Context())
	if err != nil {
		return nil, err
	}
	l := api.Models{Models: []api.Model{}}
	for _, j := range all {
		if j.Kind != "run" {
			continue
		}
		files, err := a.Runs.Files(r.Context(), j.ID)
		files = slices.DeleteFunc(files, func(f api.File) bool { return f.Kind != "model" })
		h, gone := a.Runs.History(r.Context(), j.ID)
		if err != nil || gone != nil || len(files) == 0 {
			continue // it went away, or has none yet
		}
		m := api.Model{ID: j.ID, Name: j.Name, Folder: j.Folder, StateRoot: j.StateRoot, EvalLoss: j.EvalLoss,
			BitsPerByte: j.BitsPerByte, Steps: j.Step, Tokens: j.Tokens, Rounds: len(h.Lineage), Facts: h.Job.Facts,
			Files: files, Contribute: []api.Member{}}
		if n := len(h.Lineage); n > 0 {
			m.Signers = len(h.Lineage[n-1].Signers)
		}
		for _, x := range totals.Members(h) {
			if x.Units > 0 && x.Uzen > 0 {
				m.Contribute = append(m.Contribute, x)
			}
		}
		l.Models = append(l.Models, m)
	}
	return l, nil
}
