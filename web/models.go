package web

import (
	"errors"
	"net/http"
	"slices"

	"github.com/starling-network/starling/client/api"
)

// openAIModels are the models that can be asked, in OpenAI's form.
func (s *Server) openAIModels(*http.Request) (any, error) {
	l := api.OpenAIModels{Object: "list", Data: []api.OpenAIModel{}}
	if s.Models != nil {
		for _, m := range s.Models.Models() {
			l.Data = append(l.Data, api.OpenAIModel{ID: m.Name, Object: "model", Created: m.Created.Unix(), OwnedBy: "starling"})
		}
	}
	return l, nil
}

func (s *Server) oneModel(r *http.Request) (any, error) {
	all, _ := s.openAIModels(r)
	list := all.(api.OpenAIModels).Data
	if i := slices.IndexFunc(list, func(m api.OpenAIModel) bool { return m.ID == r.PathValue("model") }); i >= 0 {
		return list[i], nil
	}
	return nil, &Failure{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND", Detail: "there is no such model",
		Fix: "GET /v1/models lists those that can be asked", Param: "model"}
}

// removeModel removes the weights of a model that a job tuned, unless a job that is not over begins with it.
func (s *Server) removeModel(r *http.Request) (any, error) {
	if s.Tuner == nil {
		return nil, errNoFiles
	}
	name := r.PathValue("model")
	busy, err := s.tuningWith(r, func(asked api.FineTuningRequest) bool { return asked.Model == name })
	if err != nil {
		return nil, err
	}
	if busy != "" {
		return nil, &Failure{Status: http.StatusConflict, Code: "MODEL_IN_USE",
			Detail: "the job " + busy + " begins with the model", Fix: "wait for its end, or cancel it", Param: "model"}
	}
	if err := s.Tuner.Remove(name); errors.Is(err, ErrNotFound) {
		return nil, &Failure{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND", Detail: "no job tuned such a model here",
			Fix: "GET /v1/models lists what there is; others than ft:... are removed with their folder", Param: "model"}
	} else if err != nil {
		return nil, err
	}
	return api.ModelDeleted{ID: name, Object: "model", Deleted: true}, nil
}

// write has a model write a text.
func (s *Server) write(w http.ResponseWriter, r *http.Request) error {
	if s.writer == nil {
		return fail(http.StatusNotImplemented, "SERVING_OFF", "this server shows models and asks none",
			"run starling model serve over the folder of a run, or starling web over a folder of runs without --read-only")
	}
	s.writer.ServeHTTP(w, r)
	return nil
}
