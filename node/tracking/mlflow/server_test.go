package mlflow

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// server is as much of an MLflow tracking server as a Writer speaks to, with its limits.
type server struct {
	*httptest.Server
	mu          sync.Mutex
	down        int // so many calls fail
	calls       []string
	auth        string
	experiments map[string]string // by name
	runs        []*stored
}

type stored struct {
	experiment, name, status string
	tags, params             map[string]string
	metrics                  []metric
	ended                    int64
}

func newServer(t *testing.T, down int) *server {
	t.Helper()
	s := &server{down: down, experiments: map[string]string{"Default": "0"}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth = r.Header.Get("Authorization")
	if s.down > 0 {
		s.down--
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/2.0/mlflow/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.calls = append(s.calls, path)
	var in struct {
		Name         string   `json:"name"`
		RunName      string   `json:"run_name"`
		Experiment   string   `json:"experiment_id"`
		Experiments  []string `json:"experiment_ids"`
		Filter       string   `json:"filter"`
		Run          string   `json:"run_id"`
		Status       string   `json:"status"`
		End          int64    `json:"end_time"`
		Tags, Params []pair
		Metrics      []metric `json:"metrics"`
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			refuse(w, 400, "INVALID_PARAMETER_VALUE")
			return
		}
	}
	switch path {
	case "experiments/get-by-name":
		id, ok := s.experiments[r.URL.Query().Get("experiment_name")]
		if !ok {
			refuse(w, 404, "RESOURCE_DOES_NOT_EXIST")
			return
		}
		fmt.Fprintf(w, `{"experiment": {"experiment_id": %q}}`, id)
	case "experiments/create":
		s.experiments[in.Name] = fmt.Sprint(len(s.experiments))
		fmt.Fprintf(w, `{"experiment_id": %q}`, s.experiments[in.Name])
	case "runs/create":
		x := &stored{experiment: in.Experiment, name: in.RunName, status: "RUNNING", tags: map[string]string{},
			params: map[string]string{}}
		for _, p := range in.Tags {
			x.tags[p.Key] = p.Value
		}
		s.runs = append(s.runs, x)
		fmt.Fprintf(w, `{"run": {"info": {"run_id": "%d"}}}`, len(s.runs)-1)
	case "runs/search":
		for i, x := range s.runs {
			if in.Filter == "tags.`starling.job` = '"+x.tags["starling.job"]+"'" && in.Experiments[0] == x.experiment {
				fmt.Fprintf(w, `{"runs": [{"info": {"run_id": "%d"}}]}`, i)
				return
			}
		}
		fmt.Fprint(w, `{}`)
	default:
		s.change(w, path, in.Run, in.Status, in.End, in.Metrics, in.Params)
	}
}

// change answers what is about one run.
func (s *server) change(w http.ResponseWriter, path, id, status string, end int64, metrics []metric, params []pair) {
	var i int
	if _, err := fmt.Sscan(id, &i); err != nil || i >= len(s.runs) || len(metrics) > 1000 || len(params) > 100 {
		refuse(w, 400, "INVALID_PARAMETER_VALUE")
		return
	}
	x := s.runs[i]
	switch path {
	case "runs/log-batch":
		x.metrics = append(x.metrics, metrics...)
		for _, p := range params {
			if old, ok := x.params[p.Key]; ok && old != p.Value || len(p.Value) > 500 {
				refuse(w, 400, "INVALID_PARAMETER_VALUE")
				return
			}
			x.params[p.Key] = p.Value
		}
	case "runs/update":
		x.status, x.ended = status, end
	default:
		refuse(w, 404, "ENDPOINT_NOT_FOUND")
		return
	}
	fmt.Fprint(w, `{}`)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error_code": %q, "message": "no"}`, code)
}
