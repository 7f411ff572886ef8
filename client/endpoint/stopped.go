package endpoint

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Halted is why a validator does not run while its process does. It is what the process answers, whatever it is asked.
type Halted struct {
	Code  string    `json:"code"` // stable, such as DISK_FULL
	Why   string    `json:"why"`
	Fix   string    `json:"fix"`
	Since time.Time `json:"since"`
}

func (s *Halted) Error() string { return s.Code + ": " + s.Why }

// ServeHTTP implements http.Handler.
func (s *Halted) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(s) // who asked may be gone
}

// stopped is the *Stopped that an answer is, or nil.
func stopped(r *http.Response) error {
	const most = 1 << 16
	s := new(Halted)
	if r.StatusCode != http.StatusServiceUnavailable || json.NewDecoder(io.LimitReader(r.Body, most)).Decode(s) != nil ||
		s.Code == "" {
		return nil
	}
	return s
}
