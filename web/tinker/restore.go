package tinker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker/clients"
	"github.com/starling-network/starling/web/tinker/journal"
	"github.com/starling-network/starling/web/tinker/work"
)

// replays read the requests that a server makes again which the one before it did not answer: those that change a model.
var replays = map[string]func(s *Server, r request) (job, error){"forward_backward": (*Server).pass,
	"optim_step": (*Server).step, "load_weights": (*Server).load}

// Restore keeps the models of the engine, which is Lasting, and the requests to them in a folder, and continues with
// those of the server before this one.
func (s *Server) Restore(dir string) error {
	e, ok := s.engine.(Lasting)
	if !ok {
		return fmt.Errorf("tinker: the models of %T end with the server", s.engine)
	}
	logs, err := journal.Open(dir)
	if err != nil {
		return err
	}
	s.dir = dir
	for _, l := range logs {
		if err := s.restore(e, l); err != nil {
			return fmt.Errorf("tinker: %s in %s: %w", l.Head.Model, dir, err)
		}
	}
	return nil
}

// restore continues with a model.
func (s *Server) restore(e Lasting, l *journal.Log) error {
	h := l.Head
	var c Create
	if err := json.Unmarshal(h.Create, &c); err != nil {
		return err
	}
	s.clients.Restore(h.Model, h.Session, h.Token, c)
	s.mu.Lock()
	s.logs[h.Model] = l
	s.mu.Unlock()
	s.queue.Always(h.Request, func() (any, error) {
		err := e.Resume(h.Model, c)
		if err == nil {
			return created(h.Model), nil
		}
		if s.config.Log != nil {
			s.config.Log.Error("a model cannot be continued; its log stays", "model", h.Model, "log", s.dir, "err", err)
		}
		s.clients.Forget(h.Model)
		s.take(h.Model)
		err = errors.Join(err, l.Close()) // with it, the requests wait for a server that can continue
		return nil, failure.New(http.StatusNotFound, "MODEL_LOST", "the model cannot be continued: "+err.Error(), "create it again")
	}, nil)
	for _, a := range l.Entries() {
		if a.Number != nil {
			s.clients.Note(h.Model, *a.Number, a.Digest, a.ID)
		}
		if a.Answered {
			s.queue.Keep(a.ID, a.Result, a.Err)
			continue
		}
		read := replays[a.Name]
		if read == nil {
			return fmt.Errorf("the request %s is %q, which none is", a.ID, a.Name)
		}
		j, err := read(s, request{by: a.By, body: a.Body})
		s.queue.Always(a.ID, func() (any, error) {
			if err != nil {
				return nil, err
			}
			return j.do(a.ID)
		}, s.answers(l))
	}
	return nil
}

// begin begins the log of a model that was created, if there are logs.
func (s *Server) begin(request, model, session, token string, c Create) error {
	if s.dir == "" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	l, err := journal.New(s.dir, journal.Head{Model: model, Session: session, Token: token, Request: request, Create: text})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[model] = l
	return nil
}

// log is that of a model, or nil.
func (s *Server) log(model string) *journal.Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[model]
}

// take removes the log of a model from the list of logs, and returns it; nil: there is none.
func (s *Server) take(model string) *journal.Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[model]
	delete(s.logs, model)
	return l
}

// forget drops a model, with what is kept of it.
func (s *Server) forget(model string) {
	s.engine.Unload(model)
	s.clients.Forget(model)
	l := s.take(model)
	if l == nil {
		return
	}
	if err := l.Remove(); err != nil && s.config.Log != nil {
		s.config.Log.Error("the log of a model stays", "model", model, "err", err)
	}
}

// addLogged is add for a request that is noted first.
func (s *Server) addLogged(l *journal.Log, name string, r request, j job) (string, error) {
	id := clients.NewID("request")
	e := journal.Entry{ID: id, Name: name, Ends: name != "forward_backward", Number: j.number, By: r.by,
		Digest: clients.Digest(r.body), Body: r.body}
	if err := l.Ask(e); err != nil {
		return "", err
	}
	_, err := s.queue.Add(id, len(r.body), func() (any, error) { return j.do(id) }, s.answers(l))
	if err != nil {
		return "", errors.Join(err, l.Drop(id))
	}
	return id, nil
}

// answers notes results in the log of a model, but for those of the end of the server.
func (s *Server) answers(l *journal.Log) func(f *work.Future) {
	return func(f *work.Future) {
		if s.ctx.Err() != nil {
			return
		}
		if err := l.Answer(f.ID, f.Result, f.Err); err != nil && s.config.Log != nil {
			s.config.Log.Error("a result is not kept", "request_id", f.ID, "err", err)
		}
	}
}
