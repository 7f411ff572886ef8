package web

import (
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
	return nil, &Failure{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND", Detail: "there is no such model", Fix: "GET /v1/models lists those that can be asked", Param: "model"}
}

// write has a model write a text.
func (s *Server) write(w http.ResponseWriter, r *http.Request) error {
	if s.writer == nil {
		return fail(http.StatusNotImplemented, "SERVING_OFF", "this server shows models and asks none", "run starling model serve over the folder of a run, or starling web over a folder of runs without --read-only")
	}
	s.writer.ServeHTTP(w, r)
	return nil
}
