package rayjobs

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
)

// Versions that the API answers with. Clients compare that of Ray with the one that first had what they use.
const (
	apiVersion = "4"
	rayVersion = "2.8.0"
)

const maxBody = 64 << 10

// Config has the callers that may use the API.
type Config struct {
	Tokens  *access.Tokens // nil: every program of this machine
	Hosts   access.Hosts
	Version string // of this program
}

// Handler answers the operations of the API: errors are texts, as the description says.
func Handler(h *Host, c Config) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern, scope string, do func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := c.Hosts.Refuse(r)
			if err == nil {
				_, err = c.Tokens.Allow(r.Context(), r, scope)
			}
			if err != nil {
				reply(w, nil, err)
				return
			}
			do(w, r)
		})
	}
	handle("GET /api/version", access.Read, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"version": apiVersion, "ray_version": rayVersion,
			"ray_commit": "starling " + c.Version})
	})
	for _, path := range []string{"/api/jobs", "/api/jobs/{$}"} { // the client in Python sends the slash
		handle("POST "+path, access.Submit, h.submit)
		handle("GET "+path, access.Read, func(w http.ResponseWriter, _ *http.Request) { answer(w, h.List()) })
	}
	handle("GET /api/jobs/{id}", access.Read, func(w http.ResponseWriter, r *http.Request) {
		j, err := h.Get(r.PathValue("id"))
		reply(w, j, err)
	})
	handle("DELETE /api/jobs/{id}", access.Submit, func(w http.ResponseWriter, r *http.Request) {
		err := h.Delete(r.PathValue("id"))
		reply(w, map[string]bool{"deleted": err == nil}, err)
	})
	handle("POST /api/jobs/{id}/stop", access.Submit, func(w http.ResponseWriter, r *http.Request) {
		ran, err := h.Stop(r.PathValue("id"))
		reply(w, map[string]bool{"stopped": ran}, err)
	})
	handle("GET /api/jobs/{id}/logs", access.Read, h.logs)
	handle("GET /api/jobs/{id}/logs/tail", access.Read, h.tail)
	return mux
}

func (h *Host) submit(w http.ResponseWriter, r *http.Request) {
	var q Request
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	if err := d.Decode(&q); err != nil {
		http.Error(w, "the body is no job: "+err.Error(), http.StatusBadRequest)
		return
	}
	id, err := h.Submit(q)
	reply(w, map[string]string{"job_id": id, "submission_id": id}, err)
}

// mostShown is how much of the end of a log one answer has.
const mostShown = 8 << 20

func (h *Host) logs(w http.ResponseWriter, r *http.Request) {
	e, err := h.find(r.PathValue("id"))
	if err != nil {
		reply(w, nil, err)
		return
	}
	text, err := h.endOfLog(e.ID)
	reply(w, map[string]string{"logs": text}, err)
}

// endOfLog is the end of the log of a job.
func (h *Host) endOfLog(id string) (string, error) {
	f, err := os.Open(filepath.Join(h.dir, jobsDir, id, logName))
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if _, err := f.Seek(max(0, info.Size()-mostShown), io.SeekStart); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, mostShown))
	return string(b), err
}

// reply answers with a value, or with the status and the text of an error.
func reply(w http.ResponseWriter, v any, err error) {
	status := http.StatusInternalServerError
	refused, ok := errors.AsType[*failure.Error](err)
	switch {
	case ok:
		status = refused.Status
	case err == nil:
		answer(w, v)
		return
	case errors.Is(err, ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, ErrRequest), errors.Is(err, ErrUsed):
		status = http.StatusBadRequest
	}
	text := err.Error()
	if ok {
		text += ": " + refused.Fix
	}
	http.Error(w, text, status)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the reader is gone
}
