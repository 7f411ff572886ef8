package web

import (
	"errors"
	"net/http"

	"github.com/starling-network/starling/client/api"
)

// asked are the models that can be asked, in OpenAI's form.
func (s *Server) asked() []api.OpenAIModel {
	list := []api.OpenAIModel{}
	if s.Models == nil {
		return list
	}
	for _, m := range s.Models.Models() {
		list = append(list, api.OpenAIModel{ID: m.Name, Object: "model", Created: m.Created.Unix(), OwnedBy: "starling"})
	}
	return list
}

func (s *Server) oneModel(r *http.Request) (any, error) {
	for _, m := range s.asked() {
		if m.ID == r.PathValue("model") {
			return m, nil
		}
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
